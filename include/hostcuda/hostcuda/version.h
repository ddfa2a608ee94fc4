/* The CUDA version that a program sees: 13.0, or 12.8 where it is compiled with -DTUTTI_CUDART=12.
 */
#ifndef TUTTI_HOSTCUDA_VERSION_H_
#define TUTTI_HOSTCUDA_VERSION_H_

#if defined(TUTTI_CUDART) && TUTTI_CUDART == 12
#define CUDART_VERSION 12080
#else
#define CUDART_VERSION 13000
#endif
#define CUDA_VERSION CUDART_VERSION

#endif
