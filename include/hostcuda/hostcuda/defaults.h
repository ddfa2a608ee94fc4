/* Default arguments of the runtime's functions, which C++ has and C has not. */
#ifndef TUTTI_HOSTCUDA_DEFAULTS_H_
#define TUTTI_HOSTCUDA_DEFAULTS_H_

#ifdef __cplusplus
#define TUTTI_CUDA_DEFAULT(v) = v
#else
#define TUTTI_CUDA_DEFAULT(v)
#endif

#endif
