/* Folders of program files that are not as they should be: a broken file, a wrong program, one for
 * another number of ranks, a file that differs between ranks or that some do not have. The job goes
 * on with right results, the logs say once what is wrong and who runs what; strict mode refuses.
 * Four processes, each with a folder of its own.
 * usage: imports_differ */
#include "msccl_text.h"

#include "nccl.h"

#include <cuda_runtime.h>
#include <dirent.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 4, COUNT = 1000, PATH_BYTES = 512, LOG_BYTES = 1 << 20 };

struct expect { /* lines of all logs together */
    const char *text;
    int times;
};

struct page { /* shared by the ranks */
    ncclUniqueId id;
    _Atomic int ready;
};

struct one {
    const char *name;
    void (*fill)(const char *folder, int rank);
    bool strict; /* rank 0 must fail with ncclInvalidUsage, the others with its sentence */
    struct expect lines[7];
};

/* ---- folders ---- */

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *out = fopen(path, "we");
    if (!out || fputs(text, out) < 0 || fclose(out)) _exit(4);
}

static void write_program(const char *folder, const char *name, enum msccl_text text,
                          const struct msccl_shape *shape)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (!msccl_text_write(path, text, shape)) _exit(4);
}

static const struct msccl_shape usual = {
    .nranks = RANKS, .nchannels = 2, .nparts = 2, .max_bytes = 1 << 20};

static void fill_mixed(const char *folder, int rank)
{
    struct msccl_shape shape = usual;
    (void)rank;
    write_program(folder, "good.xml", MSCCL_RING_ALLREDUCE, &shape);
    shape.nranks = RANKS + 1;
    write_program(folder, "other.xml", MSCCL_RING_ALLREDUCE, &shape);
    shape.nranks = RANKS;
    shape.wrong = true;
    write_program(folder, "wrong.xml", MSCCL_PAIRS_ALLTOALL, &shape);
    write_text(folder, "broken.xml", "<!-- cut -->\n<algo name=\"cut\" nchannels=");
    write_text(folder, "readme.txt", "no program");
}

static void fill_other_range(const char *folder, int rank)
{
    struct msccl_shape shape = usual;
    shape.max_bytes = rank == 2 ? 1000000 : 0;
    write_program(folder, "good.xml", MSCCL_RING_ALLREDUCE, &shape);
}

static void fill_but_last(const char *folder, int rank)
{
    if (rank < RANKS - 1) write_program(folder, "good.xml", MSCCL_RING_ALLREDUCE, &usual);
}

static void fill_last(const char *folder, int rank)
{
    if (rank == RANKS - 1) write_program(folder, "good.xml", MSCCL_RING_ALLREDUCE, &usual);
}

#define LONG_NAME "a-name-that-is-longer-than-what-ranks-send-of-it-to-each-other"

static void fill_long_name(const char *folder, int rank)
{
    struct msccl_shape shape = usual;
    write_program(folder, LONG_NAME "-and-the-same.xml", MSCCL_PAIRS_ALLTOALL, &usual);
    shape.max_bytes = rank == 2 ? 1000000 : 0;
    write_program(folder, LONG_NAME ".xml", MSCCL_RING_ALLREDUCE, &shape);
}

static void fill_cut(const char *folder, int rank)
{
    write_program(folder, "good.xml", MSCCL_RING_ALLREDUCE, &usual);
    if (rank == 1) write_text(folder, "good.xml", "<algo>");
}

static void fill_many_channels(const char *folder, int rank)
{
    struct msccl_shape shape = usual;
    shape.nchannels = 5;
    (void)rank;
    write_program(folder, "good.xml", MSCCL_RING_ALLREDUCE, &shape);
    setenv("NCCL_MAX_NCHANNELS", "4", 1);
}

/* A ring of many steps: what the library has on a host is faster at all sizes. */
static void fill_no_sizes(const char *folder, int rank)
{
    struct msccl_shape shape = usual;
    shape.max_bytes = 0;
    (void)rank;
    write_program(folder, "good.xml", MSCCL_RING_ALLREDUCE, &shape);
}

static const struct one rows[] = {
    {"mixed",
     fill_mixed,
     false,
     {{"AllReduce: 4000 Bytes -> program good.xml", 1},
      {"other.xml is for 5 ranks", 1},
      {"wrong.xml is refused: line ", 1},
      {"broken.xml is refused: line 2", 1},
      {"-> program wrong.xml", 0},
      {"readme", 0}}},
    {"other range",
     fill_other_range,
     false,
     {{"program file good.xml of rank 0", 1}, {"rank(s) 2 have", 1}, {"-> program", 0}}},
    {"long name",
     fill_long_name,
     false,
     {{"program file " LONG_NAME ".xml of rank 0", 1},
      {"rank(s) 2 have", 1},
      {"-> program " LONG_NAME "-and-the-same.xml", 1},
      {"-> program " LONG_NAME ".xml", 0}}},
    {"one has none",
     fill_but_last,
     false,
     {{"program file good.xml of rank 0", 1}, {"rank(s) 3 have", 1}, {"-> program", 0}}},
    {"one has it",
     fill_last,
     false,
     {{"program file good.xml of rank 0", 1}, {"rank(s) 3 have", 1}, {"-> program", 0}}},
    {"cut at one",
     fill_cut,
     false,
     {{"program file good.xml of rank 0", 1},
      {"rank(s) 1 have", 1},
      {"good.xml is refused", 1},
      {"-> program", 0}}},
    {"many channels",
     fill_many_channels,
     false,
     {{"program good.xml needs 5 channels, there are 4", 1}, {"-> program", 0}}},
    {"no sizes",
     fill_no_sizes,
     false,
     {{"runs where it is predicted to be fastest", 1}, {"-> program", 0}}},
    {"strict", fill_but_last, true, {{"program file good.xml of rank 0", 2 + RANKS - 1}}},
};

/* ---- ranks ---- */

static int check_allreduce(ncclComm_t comm, cudaStream_t stream, int rank, int32_t *memory)
{
    for (int i = 0; i < COUNT; i++)
        memory[i] = i + rank;
    if (ncclAllReduce(memory, memory + COUNT, COUNT, ncclInt32, ncclSum, comm, stream)) return 1;
    if (cudaStreamSynchronize(stream)) return 1;
    for (int i = 0; i < COUNT; i++) {
        if (memory[COUNT + i] != RANKS * i + RANKS * (RANKS - 1) / 2) return 1;
    }
    return 0;
}

static int check_alltoall(ncclComm_t comm, cudaStream_t stream, int rank, int32_t *memory)
{
    int32_t *out = memory + RANKS * COUNT;
    for (int i = 0; i < RANKS * COUNT; i++)
        memory[i] = i + 100000 * rank;
    if (ncclAlltoAll(memory, out, COUNT, ncclInt32, comm, stream)) return 1;
    if (cudaStreamSynchronize(stream)) return 1;
    for (int i = 0; i < RANKS * COUNT; i++) {
        if (out[i] != rank * COUNT + i % COUNT + 100000 * (i / COUNT)) return 1;
    }
    return 0;
}

/* Rank 0 makes the id, after its variables are set. */
static ncclUniqueId share_id(struct page *page, int rank)
{
    if (rank == 0 && ncclGetUniqueId(&page->id)) _exit(3);
    if (rank == 0) atomic_store(&page->ready, 1);
    while (!atomic_load(&page->ready))
        sched_yield();
    return page->id;
}

static int run_rank(const struct one *row, int rank, struct page *page)
{
    ncclUniqueId id = share_id(page, rank);
    ncclComm_t comm;
    cudaStream_t stream;
    void *memory;
    if (cudaSetDevice(rank)) return 2;
    ncclResult_t rc = ncclCommInitRank(&comm, RANKS, id, rank);
    if (row->strict) {
        return rank == 0 ? rc != ncclInvalidUsage : rc == ncclSuccess;
    }
    if (rc || cudaStreamCreate(&stream)) return 2;
    if (cudaMalloc(&memory, 2 * sizeof(int32_t) * RANKS * COUNT)) return 2;
    int wrong = check_allreduce(comm, stream, rank, memory);
    wrong += check_alltoall(comm, stream, rank, memory);
    if (wrong) printf("%s: rank %d has a wrong result\n", row->name, rank);
    if (ncclCommDestroy(comm) || cudaFree(memory) || cudaStreamDestroy(stream)) return 2;
    return wrong;
}

static void start_rank(const struct one *row, const char *root, int rank, struct page *page)
{
    char folder[PATH_BYTES], log[PATH_BYTES + 8];
    (void)snprintf(folder, sizeof(folder), "%s/%d", root, rank);
    (void)snprintf(log, sizeof(log), "%s/log", folder);
    row->fill(folder, rank);
    setenv("TUTTI_PROGRAM_DIR", folder, 1);
    setenv("TUTTI_STRICT", row->strict ? "1" : "0", 1);
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "TUNING", 1);
    setenv("NCCL_DEBUG_FILE", log, 1);
    exit(run_rank(row, rank, page));
}

/* ---- logs ---- */

static int count_lines(const char *text, const char *wanted)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, wanted)) != NULL; at++)
        count++;
    return count;
}

static void read_logs(const char *root, char *text)
{
    size_t used = 0;
    for (int rank = 0; rank < RANKS; rank++) {
        char path[PATH_BYTES];
        (void)snprintf(path, sizeof(path), "%s/%d/log", root, rank);
        FILE *in = fopen(path, "re");
        if (in) used += fread(text + used, 1, LOG_BYTES - 1 - used, in);
        if (in) (void)fclose(in);
    }
    text[used] = '\0';
}

static void remove_all(const char *root)
{
    for (int rank = 0; rank < RANKS; rank++) {
        char folder[PATH_BYTES];
        (void)snprintf(folder, sizeof(folder), "%s/%d", root, rank);
        DIR *entries = opendir(folder);
        for (const struct dirent *entry; entries && (entry = readdir(entries)) != NULL;) {
            char path[2 * PATH_BYTES];
            (void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
            (void)unlink(path);
        }
        if (entries) closedir(entries);
        (void)rmdir(folder);
    }
    (void)rmdir(root);
}

static int run(const struct one *row)
{
    static char text[LOG_BYTES];
    char root[] = "/tmp/imports.XXXXXX", folder[PATH_BYTES];
    pid_t pids[RANKS];
    int wrong = 0;
    struct page *page =
        mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || !mkdtemp(root)) return 1;
    for (int rank = 0; rank < RANKS; rank++) {
        (void)snprintf(folder, sizeof(folder), "%s/%d", root, rank);
        wrong += mkdir(folder, 0700) != 0;
        pids[rank] = fork();
        if (pids[rank] == 0) start_rank(row, root, rank, page);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        int status = 0;
        wrong += waitpid(pids[rank], &status, 0) != pids[rank] || status != 0;
    }
    read_logs(root, text);
    for (const struct expect *line = row->lines; line->text; line++) {
        int times = count_lines(text, line->text);
        if (times == line->times) continue;
        printf("%s: '%s' is said %d times, not %d\n", row->name, line->text, times, line->times);
        wrong++;
    }
    if (wrong) printf("%s: the logs are\n%s", row->name, text);
    remove_all(root);
    (void)munmap(page, sizeof(*page));
    return wrong;
}

int main(void)
{
    int wrong = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
        wrong += run(&rows[k]);
    return wrong ? 1 : 0;
}
