/* What ranks do with the programs that they read from files. Files that are the same everywhere are
 * proved, each by one rank (the k-th by rank k mod n), and become candidates for the choice;
 * everything else is reported once, by the lowest rank that knows why, and not used. */
#include "comm/records/imports.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "comm/init.h"
#include "program/verify/verify.h"
#include "transport/transport.h"
#include "tune/tune.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PACKET_ENTRIES = 512, FAULT_BYTES = 256 };

struct entry { /* a file, as ranks compare it */
    char name[47];
    uint8_t refused;
    uint64_t hash;
    uint64_t key; /* of the whole name, which may be longer */
};
_Static_assert(sizeof(struct entry) == 64, "a packet is at most 64 KiB");

struct comparison { /* what one rank finds out about all ranks' files */
    struct tt_comm *comm;
    int nranks, rank;
    int most;              /* files of the rank that has most */
    bool identical;        /* all ranks have the same, so that own entries are those of all */
    struct entry *entries; /* owned; of all ranks, `most` each; identical: the own ones */
    uint8_t *usable;       /* owned; by own file: it may be used so far; enum usable when proved */
};

/* ---- comparing ---- */

static const struct entry *entries_of(const struct comparison *comparison, int rank)
{
    return &comparison
                ->entries[comparison->identical ? 0 : (size_t)rank * (size_t)comparison->most];
}

static uint64_t key_of(const char *name)
{
    return tt_hash_bytes(TT_HASH_START, name, strlen(name));
}

static const struct entry *find_entry(const struct comparison *comparison, int rank, uint64_t key)
{
    const struct entry *entries = entries_of(comparison, rank);
    for (int k = 0; k < comparison->most && entries[k].name[0]; k++) {
        if (entries[k].key == key) return &entries[k];
    }
    return NULL;
}

static void fill_entries(const struct tt_imports *imports, struct entry *own)
{
    for (int k = 0; imports && k < imports->nfiles; k++) {
        const struct tt_import_file *file = &imports->files[k];
        size_t length = tt_min_size(strlen(file->name), sizeof(own[k].name) - 1);
        memcpy(own[k].name, file->name, length);
        own[k].key = key_of(file->name);
        own[k].refused = file->fault != NULL;
        own[k].hash = file->hash;
    }
}

/* The entries of all ranks, packet by packet. */
static ncclResult_t exchange(struct comparison *comparison, const struct entry *own)
{
    size_t n = (size_t)comparison->nranks, most = (size_t)comparison->most;
    size_t step = tt_min_size(most, PACKET_ENTRIES);
    struct entry *packet = tt_calloc(n * step, sizeof(*packet));
    ncclResult_t rc = ncclSuccess;
    if (!packet) return tt_fail(ncclSystemError, "imported programs: out of memory");
    for (size_t at = 0; at < most && !rc; at += step) {
        size_t count = tt_min_size(step, most - at);
        rc = tt_bootstrap_allgather(comparison->comm->bootstrap, own + at, count * sizeof(*own),
                                    packet);
        for (size_t r = 0; r < n && !rc; r++)
            memcpy(comparison->entries + r * most + at, packet + r * count, count * sizeof(*own));
    }
    free(packet);
    return rc;
}

static ncclResult_t compare_begin(struct comparison *comparison)
{
    struct tt_comm *comm = comparison->comm;
    const struct tt_comm_record *first = tt_record_of(comm, 0);
    comparison->identical = true;
    for (int r = 0; r < comparison->nranks; r++) {
        const struct tt_comm_record *record = tt_record_of(comm, r);
        if (record->nimports > comparison->most) comparison->most = record->nimports;
        if (record->imports != first->imports) comparison->identical = false;
    }
    if (comparison->most == 0) return ncclSuccess;
    size_t most = (size_t)comparison->most;
    size_t rows = comparison->identical ? 1 : (size_t)comparison->nranks;
    struct entry *own = tt_calloc(most, sizeof(*own));
    comparison->entries = tt_calloc(rows * most, sizeof(*comparison->entries));
    comparison->usable = tt_calloc(most, 1);
    ncclResult_t rc = ncclSuccess;
    if (!own || !comparison->entries || !comparison->usable) {
        rc = tt_fail(ncclSystemError, "imported programs: out of memory");
    } else {
        fill_entries(comm->imports, own);
        if (comparison->identical) memcpy(comparison->entries, own, most * sizeof(*own));
        if (!comparison->identical) rc = exchange(comparison, own);
    }
    free(own);
    return rc;
}

/* "1, 2, 5 ..." */
static void list_ranks(const uint64_t *hashes, int nranks, char *text, size_t text_bytes)
{
    enum { LISTED = 8 };
    size_t used = 0;
    int listed = 0;
    for (int r = 1; r < nranks && used < text_bytes; r++) {
        if (hashes[r] == hashes[0]) continue;
        const char *before = listed ? ", " : "";
        int length = listed < LISTED ? snprintf(text + used, text_bytes - used, "%s%d", before, r)
                                     : snprintf(text + used, text_bytes - used, " ...");
        used += length > 0 ? (size_t)length : 0;
        if (listed++ == LISTED) return;
    }
}

/* Rank 0 reports a file that is not the same everywhere. True: it is. */
static bool compare_file(const struct comparison *comparison, const char *name, uint64_t key,
                         uint64_t *hashes)
{
    char others[64] = "";
    for (int r = 0; r < comparison->nranks; r++) {
        const struct entry *entry = find_entry(comparison, r, key);
        hashes[r] = entry ? entry->hash : 0; /* 0: it has no such file */
    }
    if (tt_program_agree(hashes, comparison->nranks) == comparison->nranks) return true;
    if (comparison->rank != 0) return false;
    list_ranks(hashes, comparison->nranks, others, sizeof(others));
    tt_warn_setting("TUTTI_PROGRAM_DIR: program file %s of rank 0 (%016llx) is not what rank(s) "
                    "%s have: it is not used, all ranks must read the same files",
                    name, (unsigned long long)hashes[0], others);
    return false;
}

/* Rank 0 reports files that it does not have, too. */
static void report_missing(const struct comparison *comparison, uint64_t *hashes)
{
    for (int r = 1; r < comparison->nranks && comparison->rank == 0 && !comparison->identical;
         r++) {
        const struct entry *entries = entries_of(comparison, r);
        for (int k = 0; k < comparison->most && entries[k].name[0]; k++) {
            bool reported = false;
            for (int before = 0; before < r && !reported; before++)
                reported = find_entry(comparison, before, entries[k].key) != NULL;
            if (!reported) compare_file(comparison, entries[k].name, entries[k].key, hashes);
        }
    }
}

/* The lowest rank that refused this file says why. */
static void report_fault(const struct comparison *comparison, const struct tt_import_file *file)
{
    for (int r = 0; r < comparison->rank; r++) {
        const struct entry *entry = find_entry(comparison, r, key_of(file->name));
        if (entry && entry->refused) return;
    }
    tt_warn_setting("TUTTI_PROGRAM_DIR: %s is refused: %s", file->path, file->fault);
}

static ncclResult_t compare(struct comparison *comparison)
{
    const struct tt_imports *imports = comparison->comm->imports;
    uint64_t *hashes = tt_calloc((size_t)comparison->nranks, sizeof(*hashes));
    if (!hashes) return tt_fail(ncclSystemError, "imported programs: out of memory");
    for (int k = 0; imports && k < imports->nfiles; k++) {
        const struct tt_import_file *file = &imports->files[k];
        bool same = compare_file(comparison, file->name, key_of(file->name), hashes);
        if (file->fault) report_fault(comparison, file);
        comparison->usable[k] = same && file->import && !file->fault;
    }
    report_missing(comparison, hashes);
    free(hashes);
    return ncclSuccess;
}

/* ---- proving ---- */

enum usable { NOT_USABLE, USABLE, OUT_OF_PLACE /* in place with a copy of the input */ };

static enum usable prove(const struct tt_program *program, char *fault, size_t fault_bytes)
{
    _Static_assert(TT_PROGRAM_SLOTS == TT_SLOTS, "what is proved is what runs");
    bool copies = false;
    pthread_mutex_lock(&tt_comms.proofs.lock);
    ncclResult_t rc =
        tt_program_admit_usual(&tt_comms.proofs.admitted, program, &copies, fault, fault_bytes);
    pthread_mutex_unlock(&tt_comms.proofs.lock);
    if (rc) return NOT_USABLE;
    return copies ? OUT_OF_PLACE : USABLE;
}

static void report_disproved(const struct tt_import_file *file, const char *fault)
{
    char line[24] = "";
    int number = tt_import_line(file->import, fault);
    if (number) (void)snprintf(line, sizeof(line), "line %d: ", number);
    tt_warn_setting("TUTTI_PROGRAM_DIR: %s is refused: %sits proof fails: %s", file->path, line,
                    fault);
}

/* Own share of the proofs; all ranks come to the same files, and learn what is proved. */
static ncclResult_t prove_all(struct comparison *comparison)
{
    struct tt_imports *imports = comparison->comm->imports;
    size_t n = (size_t)comparison->nranks, count = (size_t)comparison->most;
    uint8_t *proved = tt_calloc((n + 1) * count, 1);
    if (!proved) return tt_fail(ncclSystemError, "imported programs: out of memory");
    int turn = 0;
    for (int k = 0; imports && k < imports->nfiles; k++) {
        char fault[FAULT_BYTES] = "";
        const struct tt_import_file *file = &imports->files[k];
        if (!comparison->usable[k] || turn++ % comparison->nranks != comparison->rank) continue;
        proved[turn - 1] = (uint8_t)prove(file->import->program, fault, sizeof(fault));
        if (!proved[turn - 1]) {
            report_disproved(file, fault);
        }
    }
    uint8_t *all = proved + count;
    ncclResult_t rc = tt_bootstrap_allgather(comparison->comm->bootstrap, proved, count, all);
    turn = 0;
    for (int k = 0; imports && k < imports->nfiles && !rc; k++) {
        if (!comparison->usable[k]) continue;
        size_t prover = (size_t)turn % n;
        comparison->usable[k] = all[prover * count + (size_t)turn];
        turn++;
    }
    free(proved);
    return rc;
}

/* ---- candidates ---- */

static bool has_channels(const struct comparison *comparison, const struct tt_import_file *file)
{
    int have = comparison->comm->edge_channels, need = file->import->program->nchannels;
    if (need <= have) return true;
    if (comparison->rank == 0) {
        tt_warn_setting("TUTTI_PROGRAM_DIR: program %s needs %d channels, there are %d "
                        "(NCCL_MAX_NCHANNELS, NCCL_MAX_CTAS, the parent's): it is not used",
                        file->name, need, have);
    }
    return false;
}

/* Of one that competes by its time. What is too large to be followed does not: as if it had named
 * all sizes. The same on all ranks. */
static ncclResult_t predict(struct tt_import_file *file, const struct tt_program_load **load_out)
{
    if (!file->predicted) return ncclSuccess;
    ncclResult_t rc = tt_program_load(file->import->program, &file->load);
    if (rc == ncclSystemError) return tt_fail(rc, "imported programs: out of memory");
    if (!rc) *load_out = &file->load;
    return ncclSuccess;
}

static ncclResult_t make_candidates(struct comparison *comparison)
{
    struct tt_comm *comm = comparison->comm;
    struct tt_imports *imports = comm->imports;
    if (!imports) return ncclSuccess;
    imports->programs = tt_calloc((size_t)imports->nfiles, sizeof(*imports->programs));
    if (!imports->programs) return tt_fail(ncclSystemError, "imported programs: out of memory");
    for (int k = 0; k < imports->nfiles; k++) {
        struct tt_import_file *file = &imports->files[k];
        if (!comparison->usable[k] || !has_channels(comparison, file)) continue;
        const struct tt_program *program = file->import->program;
        file->refs = tt_calloc(program->ninsns, 1);
        if (!file->refs) return tt_fail(ncclSystemError, "imported programs: out of memory");
        tt_program_find_refs(program, comm->member.rank, file->refs);
        const struct tt_program_load *load = NULL;
        ncclResult_t rc = predict(file, &load);
        if (rc) return rc;
        imports->programs[imports->nprograms++] =
            (struct tt_tune_program){.program = program,
                                     .refs = file->refs,
                                     .name = file->name,
                                     .hash = tt_program_hash(program),
                                     .load = load,
                                     .least_bytes = file->least_bytes,
                                     .most_bytes = file->most_bytes,
                                     .forced = imports->forced,
                                     .copies = comparison->usable[k] == OUT_OF_PLACE,
                                     .turns = tt_program_turns(program)};
        if (comparison->rank) continue;
        tt_info(
            TT_LOG_TUNING, "program %s (%016llx): %s of %d ranks, %d channels, proved%s, runs %s",
            file->name, (unsigned long long)imports->programs[imports->nprograms - 1].hash,
            tt_func_name((enum tt_func)program->func), comparison->nranks, (int)program->nchannels,
            comparison->usable[k] == OUT_OF_PLACE ? " out of place (in place its input is copied)"
                                                  : "",
            load ? "where it is predicted to be fastest" : "within its sizes");
    }
    comm->tune.programs = imports->programs;
    comm->tune.nprograms = imports->nprograms;
    return ncclSuccess;
}

ncclResult_t tt_imports_agree(struct tt_comm *comm, const struct tt_agreement *agreed)
{
    struct comparison comparison = {
        .comm = comm, .nranks = comm->member.nranks, .rank = comm->member.rank};
    int topo = comm->topo.nchannels;
    comm->edge_channels = agreed->edge_channels > topo ? agreed->edge_channels : topo;
    ncclResult_t rc = compare_begin(&comparison);
    if (!rc && comparison.most > 0) {
        rc = compare(&comparison);
        if (!rc) rc = prove_all(&comparison);
        if (!rc) rc = make_candidates(&comparison);
    }
    free(comparison.entries);
    free(comparison.usable);
    return rc;
}
