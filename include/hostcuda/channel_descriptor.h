/* Texture channel descriptors: cudaCreateChannelDesc(), declared in cuda_runtime_api.h. */
#if defined(__NVCC__) || defined(__CUDA_INTERNAL_COMPILATION__) /* nvcc has its own */
#include_next <channel_descriptor.h>
#else
#ifndef TUTTI_CHANNEL_DESCRIPTOR_H_
#define TUTTI_CHANNEL_DESCRIPTOR_H_

#include "cuda_runtime_api.h"

#endif
#endif
