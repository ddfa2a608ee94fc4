/* A name that older programs include for what cuda_runtime_api.h holds. */
#ifndef TUTTI_DRIVER_FUNCTIONS_H_
#define TUTTI_DRIVER_FUNCTIONS_H_

#include "cuda_runtime_api.h"

#endif
