/* CUDA functions that kernels call: threads, warps, fences, bits, intrinsic arithmetic. They are
 * declared for clang, which parses kernels even when it compiles only host code; they have no
 * definition. */
#if defined(__NVCC__) || defined(__CUDA_INTERNAL_COMPILATION__) /* nvcc has its own */
#include_next <device_functions.h>
#else
#ifndef TUTTI_DEVICE_FUNCTIONS_H_
#define TUTTI_DEVICE_FUNCTIONS_H_

#include "host_defines.h"
#include "vector_types.h"

#include "device_atomic_functions.h"

#if defined(__clang__) && defined(__CUDA__) && defined(__cplusplus)
#include <stddef.h>

/* Barriers of a block, and memory fences. */
__device__ void __syncthreads(void);
__device__ int __syncthreads_count(int holds);
__device__ int __syncthreads_and(int holds);
__device__ int __syncthreads_or(int holds);
__device__ void __threadfence(void);
__device__ void __threadfence_block(void);
__device__ void __threadfence_system(void);
__device__ void __nanosleep(unsigned int nsec);
__device__ long long clock64(void);
__device__ unsigned long long __globaltimer(void);
__device__ void __trap(void);
__device__ void __brkpt(void);

/* Operations among the threads of a warp. */
__device__ void __syncwarp(unsigned int mask = 0xffffffff);
__device__ unsigned int __activemask(void);
__device__ int __all_sync(unsigned int mask, int holds);
__device__ int __any_sync(unsigned int mask, int holds);
__device__ unsigned int __ballot_sync(unsigned int mask, int holds);
template <class T> __device__ T __shfl_sync(unsigned int mask, T value, int lane, int width = 32);
template <class T>
__device__ T __shfl_up_sync(unsigned int mask, T value, unsigned int by, int width = 32);
template <class T>
__device__ T __shfl_down_sync(unsigned int mask, T value, unsigned int by, int width = 32);
template <class T>
__device__ T __shfl_xor_sync(unsigned int mask, T value, int lanes, int width = 32);
template <class T> __device__ unsigned int __match_any_sync(unsigned int mask, T value);
template <class T> __device__ unsigned int __match_all_sync(unsigned int mask, T value, int *same);
template <class T> __device__ T __reduce_add_sync(unsigned int mask, T value);
template <class T> __device__ T __reduce_min_sync(unsigned int mask, T value);
template <class T> __device__ T __reduce_max_sync(unsigned int mask, T value);
__device__ unsigned int __reduce_and_sync(unsigned int mask, unsigned int value);
__device__ unsigned int __reduce_or_sync(unsigned int mask, unsigned int value);
__device__ unsigned int __reduce_xor_sync(unsigned int mask, unsigned int value);

/* Loads and stores with cache hints; queries and conversions of address spaces. */
template <class T> __device__ T __ldg(const T *address);
template <class T> __device__ T __ldca(const T *address);
template <class T> __device__ T __ldcg(const T *address);
template <class T> __device__ T __ldcs(const T *address);
template <class T> __device__ T __ldcv(const T *address);
template <class T> __device__ T __ldlu(const T *address);
template <class T> __device__ void __stcg(T *address, T value);
template <class T> __device__ void __stcs(T *address, T value);
template <class T> __device__ void __stwb(T *address, T value);
template <class T> __device__ void __stwt(T *address, T value);
__device__ unsigned int __isGlobal(const void *address);
__device__ unsigned int __isShared(const void *address);
__device__ size_t __cvta_generic_to_global(const void *address);
__device__ size_t __cvta_generic_to_shared(const void *address);
__device__ void *__cvta_shared_to_generic(size_t address);

/* Bit operations. */
__device__ int __clz(int bits);
__device__ int __clzll(long long bits);
__device__ int __ffs(int bits);
__device__ int __ffsll(long long bits);
__device__ int __popc(unsigned int bits);
__device__ int __popcll(unsigned long long bits);
__device__ unsigned int __brev(unsigned int bits);
__device__ unsigned long long __brevll(unsigned long long bits);
__device__ unsigned int __byte_perm(unsigned int low, unsigned int high, unsigned int which);
__device__ unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int by);
__device__ unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int by);
__device__ int __float_as_int(float value);
__device__ unsigned int __float_as_uint(float value);
__device__ float __int_as_float(int bits);
__device__ float __uint_as_float(unsigned int bits);
__device__ long long __double_as_longlong(double value);
__device__ double __longlong_as_double(long long bits);
__device__ int __double2hiint(double value);
__device__ int __double2loint(double value);
__device__ double __hiloint2double(int high, int low);

/* Integer arithmetic. */
__device__ int __mulhi(int a, int b);
__device__ unsigned int __umulhi(unsigned int a, unsigned int b);
__device__ long long __mul64hi(long long a, long long b);
__device__ unsigned long long __umul64hi(unsigned long long a, unsigned long long b);
__device__ int __mul24(int a, int b);
__device__ unsigned int __umul24(unsigned int a, unsigned int b);
__device__ unsigned int __sad(int a, int b, unsigned int sum);
__device__ unsigned int __usad(unsigned int a, unsigned int b, unsigned int sum);
__device__ int __hadd(int a, int b);
__device__ unsigned int __uhadd(unsigned int a, unsigned int b);
__device__ int __rhadd(int a, int b);
__device__ int __dp4a(int a, int b, int sum);
__device__ unsigned int __dp4a(unsigned int a, unsigned int b, unsigned int sum);
__device__ unsigned int __vadd4(unsigned int a, unsigned int b);
__device__ unsigned int __vsub4(unsigned int a, unsigned int b);

/* Arithmetic of float and double: fast approximations, and forms with a given rounding. */
__device__ float __expf(float x);
__device__ float __exp10f(float x);
__device__ float __logf(float x);
__device__ float __log2f(float x);
__device__ float __log10f(float x);
__device__ float __sinf(float x);
__device__ float __cosf(float x);
__device__ float __tanf(float x);
__device__ void __sincosf(float x, float *sine, float *cosine);
__device__ float __powf(float x, float y);
__device__ float __saturatef(float x);
__device__ float __fdividef(float x, float y);
__device__ float __fadd_rn(float x, float y);
__device__ float __fsub_rn(float x, float y);
__device__ float __fmul_rn(float x, float y);
__device__ float __fdiv_rn(float x, float y);
__device__ float __fmaf_rn(float x, float y, float z);
__device__ float __frcp_rn(float x);
__device__ float __fsqrt_rn(float x);
__device__ float __frsqrt_rn(float x);
__device__ double __dadd_rn(double x, double y);
__device__ double __dmul_rn(double x, double y);
__device__ double __ddiv_rn(double x, double y);
__device__ double __fma_rn(double x, double y, double z);
__device__ double __drcp_rn(double x);
__device__ double __dsqrt_rn(double x);

/* Conversions. _rn rounds to nearest even, _rz to zero, _ru up, _rd down. */
__device__ int __float2int_rn(float x);
__device__ int __float2int_rz(float x);
__device__ int __float2int_ru(float x);
__device__ int __float2int_rd(float x);
__device__ unsigned int __float2uint_rn(float x);
__device__ unsigned int __float2uint_rz(float x);
__device__ long long __float2ll_rn(float x);
__device__ long long __float2ll_rz(float x);
__device__ unsigned long long __float2ull_rz(float x);
__device__ float __int2float_rn(int x);
__device__ float __uint2float_rn(unsigned int x);
__device__ float __ll2float_rn(long long x);
__device__ float __ull2float_rn(unsigned long long x);
__device__ int __double2int_rn(double x);
__device__ int __double2int_rz(double x);
__device__ long long __double2ll_rn(double x);
__device__ long long __double2ll_rz(double x);
__device__ float __double2float_rn(double x);
__device__ double __int2double_rn(int x);
__device__ double __ll2double_rn(long long x);
__device__ double __ull2double_rn(unsigned long long x);
#endif

#endif
#endif
