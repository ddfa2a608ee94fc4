/* Kernels that modules of the process have registered, and what tuttiRegisterKernel() was given to
 * run them. Private to the room. */
#pragma once

#include "tutti.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    TT_KERNEL_SHARED_MOST = 101376, /* bytes of dynamic shared memory that a launch may ask for */
    TT_KERNEL_ARG_ALIGN = 16,       /* of the arguments that an implementation is given */
    TT_HOST_INVALID_FUNCTION = 98,
};

struct tt_host_argument {
    size_t bytes;
    size_t at; /* where it lies in a buffer that holds all of them */
};

struct tt_host_implementation { /* what tuttiRegisterKernel() was given */
    struct tt_host_implementation *next;
    const void *function;        /* NULL: by name alone */
    char *name;                  /* owned; NULL: by function alone */
    tuttiKernelRun run, touches; /* touches: NULL when not known */
    void *context;
    size_t nargs;
    size_t arg_bytes_all;          /* of the arguments as the implementation gets them, */
    size_t packed_bytes;           /* and as they lie in one buffer */
    struct tt_host_argument *args; /* owned; of `nargs` */
};

struct tt_kernel {
    struct tt_kernel *next;
    const void *module, *function; /* function: the host stub; NULL where the module was loaded */
    char *name;                    /* owned */
    _Atomic bool reported;         /* that it has no implementation */
    _Atomic size_t shared_most;    /* dynamic bytes of a launch; the program may raise it */
};

/* Find the kernel and the host implementation of `function`: a host stub, a kernel's handle, or any
 * other address. NULL has neither. Takes the lock of the kernels.
 * *kernel_out  NULL: no module has registered it
 * Returns the implementation, valid until the kernel's module closes; NULL: none is registered. */
const struct tt_host_implementation *tt_kernel_find(const void *function,
                                                    struct tt_kernel **kernel_out);
