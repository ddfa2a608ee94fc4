/* Result codes, for plugins that do not include nccl.h. */
#ifndef TUTTI_NCCL_ERR_H_
#define TUTTI_NCCL_ERR_H_

#include "nccl.h"

#endif
