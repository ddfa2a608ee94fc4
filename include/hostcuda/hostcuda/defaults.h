/* Default arguments of the runtime's functions: in C++ as in CUDA, empty in C. */
#ifndef TUTTI_HOSTCUDA_DEFAULTS_H_
#define TUTTI_HOSTCUDA_DEFAULTS_H_

#ifdef __cplusplus
#define TUTTI_CUDA_DEFAULT(v) = v
#else
#define TUTTI_CUDA_DEFAULT(v)
#endif

#endif
