/* A name that older programs include for what vector_types.h holds. */
#ifndef TUTTI_DEVICE_TYPES_H_
#define TUTTI_DEVICE_TYPES_H_

#include "vector_types.h"

#endif
