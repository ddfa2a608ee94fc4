/* CUDA's atomic operations, which kernels call. They are atomic among the threads of the device, of
 * the block (_block), or of all devices and the host (_system). Each returns the old value. */
#if defined(__NVCC__) || defined(__CUDA_INTERNAL_COMPILATION__) /* nvcc has its own */
#include_next <device_atomic_functions.h>
#else
#ifndef TUTTI_DEVICE_ATOMIC_FUNCTIONS_H_
#define TUTTI_DEVICE_ATOMIC_FUNCTIONS_H_

#include "host_defines.h"

/* Declared for clang, as in device_functions.h. */
#if defined(__clang__) && defined(__CUDA__) && defined(__cplusplus)

/* T, but not deduced from this argument: the address alone determines T, and the value is converted
 * as an overloaded function would convert it. */
template <class T> struct tuttiAtomicValue {
    typedef T type;
};

template <class T> __device__ T atomicAdd(T *address, typename tuttiAtomicValue<T>::type value);
template <class T> __device__ T atomicSub(T *address, typename tuttiAtomicValue<T>::type value);
template <class T> __device__ T atomicExch(T *address, typename tuttiAtomicValue<T>::type value);
template <class T> __device__ T atomicMin(T *address, typename tuttiAtomicValue<T>::type value);
template <class T> __device__ T atomicMax(T *address, typename tuttiAtomicValue<T>::type value);
template <class T> __device__ T atomicInc(T *address, typename tuttiAtomicValue<T>::type limit);
template <class T> __device__ T atomicDec(T *address, typename tuttiAtomicValue<T>::type limit);
template <class T> __device__ T atomicAnd(T *address, typename tuttiAtomicValue<T>::type value);
template <class T> __device__ T atomicOr(T *address, typename tuttiAtomicValue<T>::type value);
template <class T> __device__ T atomicXor(T *address, typename tuttiAtomicValue<T>::type value);
template <class T>
__device__ T atomicCAS(T *address, typename tuttiAtomicValue<T>::type expected,
                       typename tuttiAtomicValue<T>::type value);

template <class T>
__device__ T atomicAdd_block(T *address, typename tuttiAtomicValue<T>::type value);
template <class T>
__device__ T atomicSub_block(T *address, typename tuttiAtomicValue<T>::type value);
template <class T>
__device__ T atomicExch_block(T *address, typename tuttiAtomicValue<T>::type value);
template <class T>
__device__ T atomicMin_block(T *address, typename tuttiAtomicValue<T>::type value);
template <class T>
__device__ T atomicMax_block(T *address, typename tuttiAtomicValue<T>::type value);
template <class T>
__device__ T atomicAnd_block(T *address, typename tuttiAtomicValue<T>::type value);
template <class T>
__device__ T atomicOr_block(T *address, typename tuttiAtomicValue<T>::type value);
template <class T>
__device__ T atomicXor_block(T *address, typename tuttiAtomicValue<T>::type value);
template <class T>
__device__ T atomicCAS_block(T *address, typename tuttiAtomicValue<T>::type expected,
                             typename tuttiAtomicValue<T>::type value);

template <class T>
__device__ T atomicAdd_system(T *address, typename tuttiAtomicValue<T>::type value);
template <class T>
__device__ T atomicSub_system(T *address, typename tuttiAtomicValue<T>::type value);
template <class T>
__device__ T atomicExch_system(T *address, typename tuttiAtomicValue<T>::type value);
template <class T>
__device__ T atomicMin_system(T *address, typename tuttiAtomicValue<T>::type value);
template <class T>
__device__ T atomicMax_system(T *address, typename tuttiAtomicValue<T>::type value);
template <class T>
__device__ T atomicAnd_system(T *address, typename tuttiAtomicValue<T>::type value);
template <class T>
__device__ T atomicOr_system(T *address, typename tuttiAtomicValue<T>::type value);
template <class T>
__device__ T atomicXor_system(T *address, typename tuttiAtomicValue<T>::type value);
template <class T>
__device__ T atomicCAS_system(T *address, typename tuttiAtomicValue<T>::type expected,
                              typename tuttiAtomicValue<T>::type value);
#endif

#endif
#endif
