/* Network plugins, version 12 (NCCL 2.30): a library exports ncclNetPlugin_v12. Rails and planes
 * have numbers; up to eight devices are made one. The newest version: it is declared in net.h. */
#ifndef TUTTI_NCCL_NET_V12_H_
#define TUTTI_NCCL_NET_V12_H_

#include "net.h"

#endif
