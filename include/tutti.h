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

/* ---- kernels ----
 * On the host device a kernel is a host function that replaces the compiled one. It is called once
 * per block of the grid, in stream order, by the thread that runs the stream's work. The function
 * itself loops over the block's threads. Link with libtutti-host.so. */

struct tuttiDim {
    unsigned x, y, z;
};

struct tuttiBlock {
    struct tuttiDim grid, block; /* as launched */
    struct tuttiDim index;       /* of this block in the grid */
    size_t shared_bytes;
    void *shared; /* dynamic shared memory of the block, contents undefined; NULL for 0 bytes */
};

/* args[i] points to the i-th argument. Must not call the CUDA runtime. */
typedef void (*tuttiKernelRun)(const struct tuttiBlock *block, void **args, void *context);

struct tuttiKernel {
    size_t size;          /* sizeof(struct tuttiKernel) */
    const void *function; /* the kernel's address in host code, or NULL */
    const char *name;     /* its mangled name, or NULL; one of the two is needed */
    tuttiKernelRun run;
    void *context;           /* passed to run */
    size_t nargs;            /* at most 4096 */
    const size_t *arg_bytes; /* size of each argument; copied */
    /* For TUTTI_CHECK: a function that reports by tuttiCheckRead() and tuttiCheckWrite() what a
     * launch reads and writes. Called once per launch, with block index 0, in graphs as well.
     * NULL: not known. */
    tuttiKernelRun touches;
    /* Alignment of each argument, for launches that pack them into one buffer; copied. NULL: the
     * largest power of two up to 8 that divides the argument's size. */
    const size_t *arg_aligns;
};

/* Register the host implementation of a kernel: launches of the kernel call `run`. A later
 * registration replaces an earlier one. Any thread, any time. Returns 0; 1: a field is wrong; 2:
 * out of memory. */
int tuttiRegisterKernel(const struct tuttiKernel *kernel);

/* ---- the race checker (TUTTI_CHECK=race, docs/checking.md) ----
 * Report an access of `bytes` bytes at `ptr`. In a host function or a kernel's implementation it
 * counts as an access of that operation, elsewhere as one of the host. Without TUTTI_CHECK these
 * functions do nothing. Any thread. */
void tuttiCheckRead(const void *ptr, size_t bytes);
void tuttiCheckWrite(const void *ptr, size_t bytes);

/* ---- tuner plugins ---- */

struct ncclComm;

struct tuttiTunerUse {        /* of the communicator's tuner plugin on this rank, so far */
    size_t size;              /* sizeof(struct tuttiTunerUse), set by the caller */
    unsigned long long asked; /* calls of the plugin */
    double p50_usec, max_usec, sum_usec; /* time spent in them: median, maximum, sum */
    char name[64];                       /* "" without a plugin */
};

/* Fill *use. Returns 0, or an ncclResult_t when comm is not a live communicator, use is NULL, or
 * use->size is unknown to this library. No other thread may use the communicator meanwhile. */
int tuttiTunerUsed(struct ncclComm *comm, struct tuttiTunerUse *use);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}

/* The same in C++, sizes taken from the kernel's own type:
 *     static void add_host(const tuttiBlock &b, float *x, int n) { ... }
 *     tuttiRegisterKernel(add, add_host); */
template <class... Args> struct tuttiKernelThunk {
    typedef void (*Run)(const tuttiBlock &, Args...);
    template <size_t... I> struct Places {
    };
    template <size_t N, size_t... I> struct Count : Count<N - 1, N - 1, I...> {
    };
    template <size_t... I> struct Count<0, I...> {
        typedef Places<I...> Type;
    };
    template <class T> struct Plain {
        typedef T Type;
    };
    template <class T> struct Plain<const T> {
        typedef T Type;
    };
    template <size_t... I>
    static void call(Run run, const tuttiBlock &block, void **args, Places<I...>)
    {
        (void)args;
        run(block, *static_cast<typename Plain<Args>::Type *>(args[I])...);
    }
    static void enter(const tuttiBlock *block, void **args, void *context)
    {
        call(reinterpret_cast<Run>(context), *block, args, typename Count<sizeof...(Args)>::Type());
    }
};

template <class... Args>
inline int tuttiRegisterKernel(void (*kernel)(Args...), void (*run)(const tuttiBlock &, Args...))
{
    const size_t sizes[] = {sizeof(Args)..., 0}, aligns[] = {alignof(Args)..., 0};
    tuttiKernel one = {};
    one.size = sizeof(one);
    one.function = reinterpret_cast<const void *>(kernel);
    one.run = tuttiKernelThunk<Args...>::enter;
    one.context = reinterpret_cast<void *>(run);
    one.nargs = sizeof...(Args);
    one.arg_bytes = sizes;
    one.arg_aligns = aligns;
    return tuttiRegisterKernel(&one);
}
#endif
#endif
