/* Where a kernel's thread stands in its grid. Device code only has these names; a host
 * implementation of a kernel gets the same numbers as arguments (see tutti.h). */
#ifndef TUTTI_DEVICE_LAUNCH_PARAMETERS_H_
#define TUTTI_DEVICE_LAUNCH_PARAMETERS_H_

#include "vector_types.h"

#endif
