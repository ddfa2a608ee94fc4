/* Scenes of what lies inside of something: parts of variables, kernels between nodes of graphs,
 * registered memory. */
#include "racy.h"

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

const struct racy_scene racy_inside[] = {
    {"variable-part", variable_part, "race"},     {"inside-kernels", inside_kernels, "race"},
    {"inside-halves", inside_halves, "race"},     {"inside-copy", inside_copy, "race"},
    {"inside-diamond", inside_diamond, "race"},   {"inside-child", inside_child, "race"},
    {"inside-of-child", inside_of_child, "race"}, {"inside-memory", inside_memory, "race"},
    {"inside-captured", inside_captured, "race"},
};
const size_t racy_ninside = sizeof(racy_inside) / sizeof(racy_inside[0]);
