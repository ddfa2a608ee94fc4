/* A name that older programs include for what driver_types.h holds. */
#ifndef TUTTI_BUILTIN_TYPES_H_
#define TUTTI_BUILTIN_TYPES_H_

#include "driver_types.h"

#endif
