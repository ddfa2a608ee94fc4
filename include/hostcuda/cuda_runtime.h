/* CUDA's runtime API for machines without CUDA; placeholder until room hostcuda fills it. */
#ifndef TUTTI_CUDA_RUNTIME_H_
#define TUTTI_CUDA_RUNTIME_H_
#define CUDART_VERSION 13000
typedef struct CUstream_st *cudaStream_t;
#endif
