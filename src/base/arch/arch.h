/* Picks the processor's file. */
#pragma once

#if defined(__x86_64__)
#include "base/arch/x86_64.h"
#elif defined(__aarch64__)
#include "base/arch/aarch64.h"
#else
#include "base/arch/generic.h"
#endif
