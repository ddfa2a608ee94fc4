/* Descriptions of texture channels; the plain function is all that host code needs. */
#ifndef TUTTI_CHANNEL_DESCRIPTOR_H_
#define TUTTI_CHANNEL_DESCRIPTOR_H_

#include "cuda_runtime_api.h"

#endif
