/* Scenarios of one kind, "missing event": plain loads and stores of host functions, in memory that
 * work on another stream uses. */
#include "racy.h"

#include <unistd.h>

enum { TURNS = 20 };

static volatile long sum;

static void store(void *ptr)
{
    *(volatile int *)ptr = 7;
}

static void load(void *ptr)
{
    sum += *(volatile int *)ptr;
}

static void fill_to_half(void *ptr)
{
    for (size_t i = BYTES / 2 - 100; i < BYTES / 2; i++)
        ((volatile char *)ptr)[i] = 1;
}

static void store_beside_copy(bool sound) /* what a copy reads */
{
    OK(cudaMemcpyAsync(my.x, my.pinned, BYTES, cudaMemcpyDefault, my.a));
    if (sound) racy_join(my.b, my.a);
    OK(cudaLaunchHostFunc(my.b, store, my.pinned));
}

static void load_of_result(bool sound)
{
    OK(cudaMemcpyAsync(my.pinned, my.x, BYTES, cudaMemcpyDefault, my.a));
    if (sound) racy_join(my.b, my.a);
    OK(cudaLaunchHostFunc(my.b, load, my.pinned + BYTES - 4));
}

static void before_the_copy(bool sound) /* which is put on its stream first */
{
    if (sound) OK(cudaLaunchHostFunc(my.b, store, my.pinned));
    if (sound) racy_join(my.a, my.b);
    OK(cudaMemcpyAsync(my.x, my.pinned, BYTES, cudaMemcpyDefault, my.a));
    if (!sound) OK(cudaLaunchHostFunc(my.b, store, my.pinned));
}

static void other_half(bool sound) /* racy: one byte of what is in flight */
{
    OK(cudaMemcpyAsync(my.pinned + BYTES / 2 - !sound, my.x, BYTES / 2, cudaMemcpyDefault, my.a));
    OK(cudaLaunchHostFunc(my.b, fill_to_half, my.pinned));
}

static void managed_fill(bool sound)
{
    int *ints = NULL;
    OK(cudaMallocManaged((void **)&ints, BYTES, cudaMemAttachGlobal));
    OK(cudaMemsetAsync(ints, 1, BYTES, my.a));
    if (sound) racy_join(my.b, my.a);
    OK(cudaLaunchHostFunc(my.b, load, ints));
    OK(cudaDeviceSynchronize());
    OK(cudaFree(ints));
}

static void waited_for(bool sound) /* by the host, before it puts the function on its stream */
{
    OK(cudaMemcpyAsync(my.pinned, my.x, BYTES, cudaMemcpyDefault, my.a));
    if (sound) OK(cudaStreamSynchronize(my.a));
    if (!sound) usleep(20000);
    OK(cudaLaunchHostFunc(my.b, store, my.pinned));
}

static void ring_of_slots(bool sound) /* racy: the slot that is in flight */
{
    for (int turn = 0; turn < TURNS; turn++) {
        char *slot = my.pinned + (ptrdiff_t)(turn % 4) * 64;
        char *used = sound ? my.pinned + (ptrdiff_t)((turn + 2) % 4) * 64 : slot;
        OK(cudaMemcpyAsync(my.x, slot, 64, cudaMemcpyDefault, my.a));
        OK(cudaLaunchHostFunc(my.b, store, used));
        if (turn % 2) OK(cudaStreamSynchronize(my.a));
        OK(cudaStreamSynchronize(my.b));
    }
}

/* ---- functions that wait for each other ---- */

static _Atomic int signalled;

static void store_and_signal(void *ptr)
{
    *(volatile int *)ptr = 8;
    signalled = 1;
}

static void await_signal(void *arg)
{
    (void)arg;
    while (!signalled)
        usleep(100);
}

static void signalled_copy(bool sound) /* racy: the copy does not wait for the signal */
{
    cudaStream_t other = make_stream();
    signalled = 0;
    OK(cudaLaunchHostFunc(my.b, await_signal, NULL));
    OK(cudaMemcpyAsync(my.x, my.pinned, BYTES, cudaMemcpyDefault, sound ? my.b : other));
    OK(cudaLaunchHostFunc(my.a, store_and_signal, my.pinned));
    OK(cudaStreamSynchronize(my.b));
}

const struct racy_scenario racy_calls[] = {
    {"call-store-beside-copy", store_beside_copy, "race"},
    {"call-load-of-result", load_of_result, "race"},
    {"call-before-the-copy", before_the_copy, "race"},
    {"call-other-half", other_half, "race"},
    {"call-managed-fill", managed_fill, "race"},
    {"call-waited-for", waited_for, "race"},
    {"call-ring-of-slots", ring_of_slots, "race"},
    {"call-signalled-copy", signalled_copy, "race"},
};
const size_t racy_ncalls = sizeof(racy_calls) / sizeof(racy_calls[0]);
