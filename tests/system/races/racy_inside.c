/* Scenarios of what lies inside of something: parts of variables, kernels between nodes of graphs,
 * registered memory. */
#include "racy.h"

#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* What compiled programs call; no header has them. */
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterVar(void **handle, char *host_var, char *device_address, const char *device_name,
                       int ext, size_t size, int constant, int global);

static char table[BYTES];

static void variable_part(bool sound) /* what an offset reaches is the variable as well */
{
    static char name[] = "table";
    void **module = __cudaRegisterFatBinary(NULL);
    __cudaRegisterVar(module, table, name, name, 0, BYTES, 0, 0);
    __cudaRegisterFatBinaryEnd(module);
    OK(cudaMemcpyToSymbolAsync(table, my.pinned, BYTES, 0, cudaMemcpyHostToDevice, my.a));
    order(my.a, my.b, sound);
    OK(cudaMemcpyFromSymbolAsync(my.x, table, BYTES / 2, BYTES / 4, cudaMemcpyDeviceToDevice,
                                 my.b));
}

/* ---- kernels that report nothing, between nodes of one graph ---- */

static void run_add(const struct tuttiBlock *b, void **args, void *context)
{
    int *to = *(int **)args[0], n = *(int *)args[2];
    const int *from = *(const int **)args[1];
    (void)b, (void)context;
    for (int i = 0; i < n; i++)
        to[i] = from[i] + 1;
}

static void add_stub(void) {}

static void register_kernel(void)
{
    static const size_t sizes[] = {sizeof(void *), sizeof(void *), sizeof(int)};
    const struct tuttiKernel one = {.size = sizeof(one),
                                    .function = (const void *)add_stub,
                                    .run = run_add,
                                    .nargs = 3,
                                    .arg_bytes = sizes};
    OK(tuttiRegisterKernel(&one));
}

static cudaGraphNode_t kernel(cudaGraph_t graph, const cudaGraphNode_t *behind, char *to,
                              const char *from, int n)
{
    cudaGraphNode_t node;
    void *args[] = {&to, &from, &n};
    const struct cudaKernelNodeParams params = {.func = (void *)add_stub,
                                                .gridDim = {1, 1, 1},
                                                .blockDim = {1, 1, 1},
                                                .kernelParams = args};
    OK(cudaGraphAddKernelNode(&node, graph, behind, behind ? 1 : 0, &params));
    return node;
}

static cudaGraphNode_t fill_node(cudaGraph_t graph, const cudaGraphNode_t *behind, void *ptr)
{
    cudaGraphNode_t node;
    const struct cudaMemsetParams params = {
        .dst = ptr, .elementSize = 1, .width = BYTES, .height = 1};
    OK(cudaGraphAddMemsetNode(&node, graph, behind, behind ? 1 : 0, &params));
    return node;
}

static void launch(cudaGraph_t graph)
{
    cudaGraphExec_t exec;
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, my.a));
    OK(cudaStreamSynchronize(my.a));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

static cudaGraph_t new_graph(void)
{
    cudaGraph_t graph;
    register_kernel();
    OK(cudaGraphCreate(&graph, 0));
    return graph;
}

static void inside_kernels(bool sound)
{
    cudaGraph_t graph = new_graph();
    cudaGraphNode_t first = kernel(graph, NULL, my.y, my.x, COUNT);
    kernel(graph, sound ? &first : NULL, my.z, my.y, COUNT);
    launch(graph);
}

static void inside_halves(bool sound) /* racy: they share one element */
{
    cudaGraph_t graph = new_graph();
    kernel(graph, NULL, my.y, my.x, COUNT / 2 + (sound ? 0 : 1));
    kernel(graph, NULL, my.y + BYTES / 2, my.x, COUNT / 2);
    launch(graph);
}

static void inside_copy(bool sound)
{
    cudaGraph_t graph = new_graph();
    cudaGraphNode_t node, first = kernel(graph, NULL, my.y, my.x, COUNT);
    OK(cudaGraphAddMemcpyNode1D(&node, graph, sound ? &first : NULL, sound ? 1 : 0, my.pinned,
                                my.y + BYTES / 2, 64, cudaMemcpyDefault));
    launch(graph);
}

static void inside_diamond(bool sound) /* the last node knows of one branch alone */
{
    cudaGraph_t graph = new_graph();
    cudaGraphNode_t top = fill_node(graph, NULL, my.x);
    cudaGraphNode_t left = kernel(graph, &top, my.y, my.x, COUNT);
    cudaGraphNode_t right = kernel(graph, &top, my.z, my.x, COUNT);
    cudaGraphNode_t last = kernel(graph, &left, my.x, my.y, COUNT);
    if (sound) OK(cudaGraphAddDependencies(graph, &right, &last, NULL, 1));
    launch(graph);
}

static void inside_child(bool sound) /* a kernel in a child graph, and a node beside the child */
{
    cudaGraph_t child = new_graph(), graph = new_graph();
    cudaGraphNode_t node, first = fill_node(graph, NULL, my.x);
    kernel(child, NULL, my.y, my.x, COUNT);
    OK(cudaGraphAddChildGraphNode(&node, graph, sound ? &first : NULL, sound ? 1 : 0, child));
    OK(cudaGraphDestroy(child));
    launch(graph);
}

static void inside_of_child(bool sound) /* both in the child graph */
{
    cudaGraph_t child = new_graph(), graph = new_graph();
    cudaGraphNode_t node, first = kernel(child, NULL, my.y, my.x, COUNT);
    kernel(child, sound ? &first : NULL, my.y, my.z, COUNT);
    fill_node(graph, NULL, my.pinned);
    OK(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    OK(cudaGraphDestroy(child));
    launch(graph);
}

static void inside_memory(bool sound) /* the graph's own, which is freed beside the kernel */
{
    cudaGraph_t graph = new_graph();
    cudaGraphNode_t node;
    struct cudaMemAllocNodeParams memory = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {.type = cudaMemLocationTypeDevice}},
        .bytesize = BYTES};
    OK(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &memory));
    cudaGraphNode_t begun = fill_node(graph, &node, memory.dptr);
    cudaGraphNode_t read = kernel(graph, &begun, my.y, memory.dptr, COUNT);
    OK(cudaGraphAddMemFreeNode(&node, graph, sound ? &read : &begun, 1, memory.dptr));
    launch(graph);
}

static void inside_captured(bool sound)
{
    cudaGraph_t graph;
    int n = COUNT;
    const char *from = my.x;
    void *first[] = {&my.y, &from, &n}, *second[] = {&my.z, &my.y, &n};
    cudaEvent_t joined;
    register_kernel();
    OK(cudaEventCreate(&joined));
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeThreadLocal));
    order(my.a, my.b, true);
    OK(cudaLaunchKernel((const void *)add_stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, first, 0, my.a));
    order(my.a, my.b, sound);
    OK(cudaLaunchKernel((const void *)add_stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, second, 0, my.b));
    OK(cudaEventRecord(joined, my.b));
    OK(cudaStreamWaitEvent(my.a, joined, 0));
    OK(cudaStreamEndCapture(my.a, &graph));
    launch(graph);
}

/* ---- plain loads and stores of memory that the program registered ---- */

enum { OWN_BYTES = 8 * BYTES }; /* whole pages, and more */
static volatile int seen;

static int *own_memory(void)
{
    static char memory[OWN_BYTES + BYTES];
    OK(cudaHostRegister(memory, sizeof(memory), 0));
    return (int *)(void *)(memory + BYTES - (uintptr_t)memory % BYTES);
}

static char *device_memory(int value)
{
    char *memory;
    OK(cudaMalloc((void **)&memory, OWN_BYTES));
    OK(cudaMemset(memory, value, OWN_BYTES));
    OK(cudaDeviceSynchronize());
    return memory;
}

static void expect(int got, int wanted)
{
    if (got == wanted) return;
    fprintf(stderr, "got %d, wanted %d\n", got, wanted);
    exit(3);
}

static void registered_result(bool sound)
{
    int *own = own_memory();
    OK(cudaMemcpyAsync(own, device_memory(3), OWN_BYTES, cudaMemcpyDefault, my.a));
    await(my.a, sound);
    seen = own[COUNT + 5];
    expect(seen, 0x03030303);
}

static void registered_input(bool sound)
{
    int *own = own_memory(), back;
    char *memory = device_memory(3);
    for (int i = 0; i < OWN_BYTES / 4; i++)
        own[i] = i;
    OK(cudaMemcpyAsync(memory, own, OWN_BYTES, cudaMemcpyDefault, my.a));
    await(my.a, sound);
    own[COUNT + 7] = 0;
    OK(cudaStreamSynchronize(my.a));
    OK(cudaMemcpy(&back, memory + 4 * (COUNT + 6), 4, cudaMemcpyDefault));
    expect(back, COUNT + 6);
}

static void registered_fill(bool sound)
{
    int *own = own_memory();
    OK(cuMemsetD32Async((CUdeviceptr)own, 77, OWN_BYTES / 4, my.a));
    OK(cudaMemcpyAsync(my.x, own + COUNT, BYTES, cudaMemcpyDefault, my.a));
    await(my.a, sound);
    seen = own[COUNT];
    expect(seen, 77);
    OK(cudaMemcpy(my.pageable, my.x, BYTES, cudaMemcpyDefault));
    expect(*(int *)(void *)(my.pageable + BYTES - 4), 77);
}

static void registered_rows(bool sound) /* out, and back beside them */
{
    int *own = own_memory();
    char *memory = device_memory(1);
    OK(cudaMemset2DAsync(memory, 256, 9, 128, OWN_BYTES / 256, my.a));
    OK(cudaMemcpy2DAsync(own, 256, memory, 256, 256, OWN_BYTES / 256, cudaMemcpyDefault, my.a));
    OK(cudaMemcpy2DAsync(memory + 128, 256, own, 256, 128, OWN_BYTES / 256, cudaMemcpyDefault,
                         my.a));
    OK(cudaMemcpyAsync(own, memory, OWN_BYTES, cudaMemcpyDefault, my.a));
    await(my.a, sound);
    seen = own[2 * COUNT + 40];
    expect(seen, 0x09090909);
}

static void registered_graph(bool sound)
{
    int *own = own_memory();
    char *memory = device_memory(5);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeThreadLocal));
    OK(cudaMemcpyAsync(own, memory, OWN_BYTES, cudaMemcpyDefault, my.a));
    OK(cudaStreamEndCapture(my.a, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, my.a));
    await(my.a, sound);
    seen = own[3 * COUNT];
    expect(seen, 0x05050505);
    OK(cudaStreamSynchronize(my.a));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

/* A reduction uses the memory as the program has mapped it, behind a copy that closed it. */
static void registered_reduced(bool sound)
{
    racy_start_ranks();
    int *own = own_memory();
    OK(cudaSetDevice(0));
    OK(cudaMemcpyAsync(own, device_memory(0), OWN_BYTES, cudaMemcpyDefault,
                       sound ? ranks.stream[0] : my.a));
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclAllReduce(r ? (void *)ranks.in[1] : own, r ? (void *)ranks.in[1] : own, COUNT,
                         ncclFloat, ncclSum, ranks.comm[r], ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    OK(cudaStreamSynchronize(ranks.stream[0]));
    seen = own[COUNT / 2];
    OK(cudaMemcpyAsync(my.x, own, BYTES, cudaMemcpyDefault, my.a));
    OK(cudaStreamSynchronize(my.a));
    own[COUNT / 2] = 1;
    racy_finish_ranks();
}

/* The kernel writes there what the host waits for, so the copy before it is known to be over. */
static void run_flag(const struct tuttiBlock *b, void **args, void *context)
{
    (void)b, (void)context;
    __atomic_store_n(*(int **)args[0], 1, __ATOMIC_RELEASE);
}

static void flag_stub(void) {}

static void registered_flag(bool sound)
{
    static const size_t sizes[] = {sizeof(void *)};
    const struct tuttiKernel one = {.size = sizeof(one),
                                    .function = (const void *)flag_stub,
                                    .run = run_flag,
                                    .nargs = 1,
                                    .arg_bytes = sizes};
    int *own = own_memory(), *flag = own + (OWN_BYTES - BYTES) / 4;
    void *args[] = {&flag};
    OK(tuttiRegisterKernel(&one));
    OK(cudaMemcpyAsync(own, device_memory(4), BYTES * 4, cudaMemcpyDefault, my.a));
    if (!sound) seen = own[COUNT];
    OK(cudaLaunchKernel((const void *)flag_stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, my.a));
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE)) {
    }
    seen = own[COUNT];
    expect(seen, 0x04040404);
}

/* Given back, and registered again: the pages are the program's in between. */
static void registered_again(bool sound)
{
    static char memory[OWN_BYTES + BYTES];
    int *own = (int *)(void *)(memory + BYTES - (uintptr_t)memory % BYTES);
    OK(cudaHostRegister(own, OWN_BYTES, 0));
    OK(cudaMemcpyAsync(own, device_memory(6), OWN_BYTES, cudaMemcpyDefault, my.a));
    await(my.a, sound);
    OK(cudaHostUnregister(own));
    for (int i = 0; i < OWN_BYTES / 4; i++)
        own[i] = i;
    OK(cudaHostRegister(own, OWN_BYTES, 0));
    OK(cudaMemcpyAsync(own, device_memory(7), OWN_BYTES, cudaMemcpyDefault, my.a));
    OK(cudaStreamSynchronize(my.a));
    expect(own[COUNT], 0x07070707);
}

/* Shared memory stays open, and holds what was copied and filled. */
static void registered_shared(bool sound)
{
    char *own = mmap(NULL, OWN_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    OK(own == MAP_FAILED);
    OK(cudaHostRegister(own, OWN_BYTES, 0));
    OK(cudaMemcpyAsync(own, device_memory(7), OWN_BYTES, cudaMemcpyDefault, my.a));
    OK(cudaMemset2DAsync(own + 100, 1000, 3, 10, 20, my.a));
    order(my.a, my.b, sound);
    OK(cudaMemcpyAsync(my.x, own + BYTES, BYTES, cudaMemcpyDefault, my.b));
    OK(cudaDeviceSynchronize());
    expect(own[99], 7);
    expect(own[1100], 3);
    OK(cudaHostUnregister(own));
    munmap(own, OWN_BYTES);
}

/* A child has the pages as its parent had closed them. */
static void registered_forked(bool sound)
{
    int *own = own_memory(), status = -1;
    OK(cudaMemcpyAsync(device_memory(0), own, OWN_BYTES, cudaMemcpyDefault, my.a));
    pid_t pid = fork();
    if (pid == 0) {
        own[0] = own[2 * COUNT];
        _exit(own[0]);
    }
    OK(waitpid(pid, &status, 0) != pid || status);
    await(my.a, sound);
    own[COUNT] = 1;
}

const struct racy_scenario racy_inside[] = {
    {"variable-part", variable_part, "race"},
    {"inside-kernels", inside_kernels, "race"},
    {"inside-halves", inside_halves, "race"},
    {"inside-copy", inside_copy, "race"},
    {"inside-diamond", inside_diamond, "race"},
    {"inside-child", inside_child, "race"},
    {"inside-of-child", inside_of_child, "race"},
    {"inside-memory", inside_memory, "race"},
    {"inside-captured", inside_captured, "race"},
    {"registered-result", registered_result, "race"},
    {"registered-input", registered_input, "race"},
    {"registered-fill", registered_fill, "race"},
    {"registered-rows", registered_rows, "race"},
    {"registered-graph", registered_graph, "race"},
    {"registered-reduced", registered_reduced, "race"},
    {"registered-flag", registered_flag, "race"},
    {"registered-again", registered_again, "race"},
    {"registered-shared", registered_shared, "race"},
    {"registered-forked", registered_forked, "race"},
};
const size_t racy_ninside = sizeof(racy_inside) / sizeof(racy_inside[0]);
