/* Data types, for plugins that do not include nccl.h. */
#ifndef TUTTI_NCCL_TYPES_H_
#define TUTTI_NCCL_TYPES_H_

#include "nccl.h"

#endif
