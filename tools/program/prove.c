/* `tutti verify`: what is proved of a program, and how far it is from what any program needs. */
#include "base/mem.h"
#include "program/verify/verify.h"
#include "program_tool.h"

#include <stdlib.h>
#include <string.h>

enum { GRAIN = 4, ALL_PARTS = 16, MOST_SLOTS = 64 };

static bool verify(const struct tt_program *const *programs, size_t count, int nslots, int in_place,
                   char *fault, size_t fault_bytes)
{
    struct tt_verify_options options = {.count = count,
                                        .chunk_limit = GRAIN,
                                        .grain = GRAIN,
                                        .slice = programs[0]->whole_window ? 0 : GRAIN,
                                        .nslots = nslots,
                                        .in_place = in_place};
    return !tt_program_verify(programs, programs[0]->nranks, &options, fault, fault_bytes);
}

/* Whether the window ends in that part in one of the proofs: in each where they are few. */
static bool tries_part(size_t k, size_t nparts)
{
    return nparts <= ALL_PARTS || k < 2 || k == nparts / 2 || k == nparts - 1;
}

static bool verify_counts(const struct tt_program *const *programs, int in_place,
                          struct program_proof *proof)
{
    char counts[sizeof(proof->counts)] = "";
    size_t nparts = (size_t)programs[0]->nparts, at = 0;
    char *fault = proof->fault[in_place];
    bool right = true;
    for (size_t k = 0; k <= nparts + 1 && right; k++) {
        size_t count = k < nparts ? k * GRAIN + 1 : nparts * GRAIN;
        if (k > nparts) count = 2 * count + GRAIN + 1;
        if (k < nparts && !tries_part(k, nparts)) continue;
        right = verify(programs, count, MOST_SLOTS, in_place, fault, sizeof(proof->fault[0]));
        if (at < sizeof(counts)) {
            at +=
                (size_t)snprintf(counts + at, sizeof(counts) - at, "%s%zu", at ? ", " : "", count);
        }
    }
    if (right) memcpy(proof->counts, counts, sizeof(counts));
    return right;
}

/* The fewest slots that a full window ends with. */
static int count_slots(const struct tt_program *const *programs, int in_place)
{
    char fault[320];
    size_t count = (size_t)programs[0]->nparts * GRAIN;
    int nslots = 1;
    while (nslots < MOST_SLOTS && !verify(programs, count, nslots, in_place, fault, sizeof(fault)))
        nslots++;
    return nslots;
}

bool program_prove(const struct program_source *source, struct program_proof *proof)
{
    const struct tt_program *program = source->program;
    size_t n = (size_t)program->nranks;
    const struct tt_program **programs = tt_calloc(n, sizeof(*programs));
    *proof = (struct program_proof){.proved = true};
    for (size_t r = 0; programs && r < n; r++)
        programs[r] = program;
    proof->meant[0] = !source->import || source->import->out_of_place;
    proof->meant[1] = source->import && source->import->in_place;
    for (int in_place = 0; in_place < 2 && programs; in_place++) {
        proof->right[in_place] = verify_counts(programs, in_place, proof);
        if (proof->meant[in_place] && !proof->right[in_place]) proof->proved = false;
    }
    if (programs && proof->proved) {
        proof->nslots = count_slots(programs, !proof->right[0]);
        char *fault = proof->fault[!proof->meant[0]];
        if (tt_program_flow(program, &proof->flow, fault, sizeof(proof->fault[0])))
            proof->flow.nsteps = -1; /* too large: the proof stands */
    }
    if (!programs) (void)fprintf(stderr, "tutti: out of memory\n");
    free(programs);
    return programs;
}

void program_proof_fini(struct program_proof *proof)
{
    tt_flow_fini(&proof->flow);
}

/* ---- telling it ---- */

static uint64_t most(const uint64_t *values, int count)
{
    uint64_t most = 0;
    for (int k = 0; values && k < count; k++)
        most = values[k] > most ? values[k] : most;
    return most;
}

static const char *use_name(int in_place)
{
    return in_place ? "in place" : "out of place";
}

static int line_of(const struct program_source *source, const char *fault)
{
    return source->import ? tt_import_line(source->import, fault) : 0;
}

static void print_refused(const struct program_options *options,
                          const struct program_source *source, const struct program_proof *proof)
{
    int use = proof->meant[0] && !proof->right[0] ? 0 : 1;
    int line = line_of(source, proof->fault[use]);
    if (line) {
        printf("%s:%d: ", options->paths[0], line);
    } else if (source->import) {
        printf("%s: ", options->paths[0]);
    }
    struct tt_import_place place;
    printf("refused, %s: ", use_name(use));
    if (source->import && tt_import_find(source->import, proof->fault[use], &place))
        printf("gpu %d tb %d step %d: ", place.gpu, place.block, place.step);
    printf("%s\n", proof->fault[use]);
}

void program_flow_print(const struct tt_program *program, const struct tt_flow *flow)
{
    int least = tt_flow_least_steps(program);
    if (flow->nsteps < 0) return;
    uint64_t chunks = most(flow->sent, program->nranks);
    double blocks = (double)chunks / program->nparts, bound = tt_flow_least_sent(program);
    if (program->table_at[TT_TABLE_NETWORK]) { /* which does what the bounds know of ranks alone */
        printf("steps          %d one after the other\n"
               "sends          the busiest rank %llu chunks, %.4g blocks; the network reduces\n",
               flow->nsteps, (unsigned long long)chunks, blocks);
        return;
    }
    printf("steps          %d one after the other; %d is the least where a rank sends to one other "
           "at a time\n",
           flow->nsteps, least);
    printf("sends          the busiest rank %llu chunks, %.4g blocks; any program at least %.4g "
           "(%.4g times that)\n",
           (unsigned long long)chunks, blocks, bound, bound > 0 ? blocks / bound : 1);
}

static bool communicators_run(const struct program_proof *proof)
{
    return proof->right[0] && proof->nslots <= PROGRAM_SLOTS;
}

/* What communicators do with a file that is proved. They choose without looking at buffers. */
static const char *use_of(const struct program_source *source, const struct program_proof *proof)
{
    if (proof->nslots > PROGRAM_SLOTS) return "refuse it: it needs more slots than there are";
    if (!proof->right[0]) return "refuse it: it must be right out of place";
    if (proof->right[1] && source->program->func != TT_FUNC_ALLTOALL) return "run it";
    return "run it; calls in place copy their input first";
}

static void print_proved(const struct program_source *source, const struct program_proof *proof)
{
    char title[192];
    program_title(source, title, sizeof(title));
    printf("proved: %s\n", title);
    printf("contributions  every element of the result holds each input that belongs there once, "
           "scaled once, finished once\n"
           "order          nothing is read before it is written, accesses of different threads "
           "and ranks are ordered,\n"
           "               what must stay as it was is not written\n");
    printf("end            every wait ends with %d slot%s per edge (the library has %d), and all "
           "slots are empty then\n",
           proof->nslots, proof->nslots == 1 ? "" : "s", (int)PROGRAM_SLOTS);
    for (int use = 0; use < 2; use++) {
        printf("%-15s%s%s\n", use_name(use), proof->right[use] ? "right" : "not right: ",
               proof->right[use] ? "" : proof->fault[use]);
    }
    if (source->import) printf("communicators  %s\n", use_of(source, proof));
    printf("lengths        counts of %s in chunks of %d\n", proof->counts, (int)GRAIN);
    program_flow_print(source->program, &proof->flow);
    program_predict_print(&proof->predicted);
}

static json_t *sent_json(const struct tt_program *program, const uint64_t *values)
{
    json_t *list = json_array();
    for (int r = 0; values && r < program->nranks; r++)
        json_array_append_new(list, json_integer((json_int_t)values[r]));
    return list;
}

static json_t *proof_json(const struct program_source *source, const struct program_proof *proof)
{
    const struct tt_program *program = source->program;
    const struct tt_flow *flow = &proof->flow;
    char title[192];
    program_title(source, title, sizeof(title));
    json_t *all = json_pack("{s:b, s:s, s:s, s:s, s:i, s:i}", "proved", proof->proved, "program",
                            title, "op", tt_func_name((enum tt_func)program->func), "algo",
                            tt_algo_name((enum tt_algo)program->algo), "ranks",
                            (int)program->nranks, "chunks_per_block", (int)program->nparts);
    for (int use = 0; use < 2; use++) {
        json_t *row =
            json_pack("{s:b, s:b}", "meant", proof->meant[use], "right", proof->right[use]);
        if (!proof->right[use]) {
            json_object_set_new(row, "fault", json_string(proof->fault[use]));
            json_object_set_new(row, "line", json_integer(line_of(source, proof->fault[use])));
        }
        json_object_set_new(all, use ? "in_place" : "out_of_place", row);
    }
    if (!proof->proved) return all;
    json_object_set_new(all, "slots", json_integer(proof->nslots));
    if (source->import) json_object_set_new(all, "runs", json_boolean(communicators_run(proof)));
    json_object_set_new(all, "counts", json_string(proof->counts));
    if (flow->nsteps < 0) return all;
    json_object_set_new(all, "steps", json_integer(flow->nsteps));
    json_object_set_new(all, "chunks_sent", sent_json(program, flow->sent));
    json_object_set_new(all, "chunks_received", sent_json(program, flow->received));
    if (proof->predicted.there)
        json_object_set_new(all, "predicted", program_predict_json(&proof->predicted));
    if (program->table_at[TT_TABLE_NETWORK]) return all;
    json_object_set_new(all, "least_steps", json_integer(tt_flow_least_steps(program)));
    json_object_set_new(all, "least_blocks_sent", json_real(tt_flow_least_sent(program)));
    return all;
}

int program_verify(const struct program_options *options)
{
    struct program_source source;
    struct program_proof proof;
    if (options->npaths > 1 || (options->npaths && options->algo)) {
        (void)fprintf(stderr, "tutti %s: one program at a time\n", options->command);
        return 2;
    }
    int status = program_open(options, options->paths[0], &source);
    if (!status && !program_prove(&source, &proof)) status = 1;
    if (!status) {
        status = proof.proved ? 0 : 1;
        if (proof.proved) program_predict(&source, &proof.predicted);
        if (options->json) {
            program_print_json(proof_json(&source, &proof));
        } else if (proof.proved) {
            print_proved(&source, &proof);
        } else {
            print_refused(options, &source, &proof);
        }
        program_proof_fini(&proof);
    }
    program_close(&source);
    return status;
}
