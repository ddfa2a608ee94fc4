/* What Tutti offers beyond NCCL's interface. Programs that use only nccl.h never need it. */
#ifndef TUTTI_H_
#define TUTTI_H_

#include <stddef.h>

#define TUTTI_VERSION_TEXT "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* The library's own version ("0.1.0"); ncclGetVersion() answers with the NCCL release whose
 * interface it has. Never NULL, never fails. */
const char *tuttiVersion(void);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
