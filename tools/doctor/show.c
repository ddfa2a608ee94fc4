/* Text of `tutti doctor`: per communicator the verdict first, then who is where. */
#include "doctor/show.h"

#include "doctor/init.h"

#include <stdio.h>
#include <string.h>

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void show_wait(const json_t *rank)
{
    const json_t *wait = json_array_get(json_object_get(rank, "waits"), 0);
    const double graphs = number_of(rank, "graphs");
    if (graphs > 0) printf(" for graphs with %.0f operation(s) to be destroyed", graphs);
    if (!wait || graphs > 0) return;
    int peer = (int)number_of(wait, "peer");
    printf(" for %s of ", text_of(wait, "for"));
    if (peer < 0) printf("others");
    if (peer >= 0) printf("rank %d", peer);
    printf(" in operation %.0f %s, since %.1f s", number_of(wait, "operation"),
           text_of(wait, "call"), number_of(wait, "age_sec"));
}

static void show_rank(const json_t *rank)
{
    const char *state = text_of(rank, "state");
    const bool in_init = !strcmp(state, "init");
    printf("  rank %-4.0f %s pid %.0f  %s", number_of(rank, "rank"), text_of(rank, "host"),
           number_of(rank, "pid"), in_init ? "in its init" : state);
    if (in_init) {
        printf(" since %.1f s", number_of(rank, "still_sec"));
    } else if (json_object_get(rank, "exchange_sec")) {
        printf(" for the others in a split, registration or the like since %.1f s",
               number_of(rank, "exchange_sec"));
    } else if (!strcmp(state, "waits")) {
        show_wait(rank);
    } else if (*text_of(rank, "last_call")) {
        printf("; last call: operation %.0f %s, %.1f s ago", number_of(rank, "collectives"),
               text_of(rank, "last_call"), number_of(rank, "last_call_sec"));
    }
    printf("\n");
}

/* A question may pass through other ranks, so who runs and is silent may be behind a stopped one.
 */
static void show_missing(const json_t *missing)
{
    const json_t *one;
    size_t i;
    bool stopped = false;
    json_array_foreach(missing, i, one)
    {
        stopped |= !strcmp(text_of(one, "state"), "stopped");
    }
    json_array_foreach(missing, i, one)
    {
        const char *state = text_of(one, "state");
        if (number_of(one, "pid") <= 0) {
            printf("  rank %-4.0f has not come%s\n", number_of(one, "rank"),
                   strcmp(state, "not come") != 0 ? ", as far as those who answered know" : "");
            continue;
        }
        printf("  rank %-4.0f %s pid %.0f  %s", number_of(one, "rank"), text_of(one, "host"),
               number_of(one, "pid"), !strcmp(state, "init") ? "in its init" : state);
        if (!strcmp(state, "silent") && json_is_true(json_object_get(one, "runs"))) {
            printf(", though it runs");
            if (stopped) printf(": out of reach behind a stopped rank, or too busy");
        }
        printf("\n");
    }
}

static void show_comm(const json_t *comm)
{
    const json_t *verdict = json_object_get(comm, "verdict"), *one;
    const char *name = text_of(comm, "name");
    size_t i;
    printf("communicator %s%s%s%s, %.0f ranks\n", text_of(comm, "id"), *name ? " \"" : "", name,
           *name ? "\"" : "", number_of(comm, "size"));
    if (json_is_object(verdict)) printf("  VERDICT: %s\n", text_of(verdict, "sentence"));
    json_array_foreach(json_object_get(comm, "ranks"), i, one) show_rank(one);
    show_missing(json_object_get(comm, "missing"));
}

bool doctor_is_stuck(const json_t *job)
{
    const json_t *comm;
    size_t i;
    json_array_foreach(json_object_get(job, "communicators"), i, comm)
    {
        if (json_is_object(json_object_get(comm, "verdict"))) return true;
    }
    return false;
}

/* Of a job in which no rank stands still: that is said, too. */
static void show_well(const json_t *job)
{
    const json_t *comm;
    size_t i, missing = 0;
    json_array_foreach(json_object_get(job, "communicators"), i, comm)
    {
        missing += json_array_size(json_object_get(comm, "missing")) || doctor_in_init(comm);
    }
    if (!missing && i) printf("  nobody stands still\n");
}

bool doctor_show(const json_t *job)
{
    const json_t *comm;
    size_t i;
    const char *program = text_of(job, "program");
    printf("job of %zu process(es)%s%s, %zu communicator(s), asked in %.3f s\n",
           json_array_size(json_object_get(job, "processes")), *program ? " of " : "", program,
           json_array_size(json_object_get(job, "communicators")), number_of(job, "took_sec"));
    json_array_foreach(json_object_get(job, "communicators"), i, comm) show_comm(comm);
    if (!doctor_is_stuck(job)) show_well(job);
    return doctor_is_stuck(job);
}
