/* The question to a rank may pass through one that is stopped: then that rank has not answered,
 * although it runs, and says itself what it does. */
#include "merge.h"

#include <stdbool.h>
#include <string.h>

static json_t *find_by(const json_t *list, const char *key, const json_t *like)
{
    json_t *entry;
    size_t i;
    json_array_foreach(list, i, entry)
    {
        if (json_equal(json_object_get(entry, key), json_object_get(like, key))) return entry;
    }
    return NULL;
}

static void remove_rank(json_t *list, const json_t *rank)
{
    const json_t *entry;
    size_t i;
    json_array_foreach(list, i, entry)
    {
        if (!json_equal(json_object_get(entry, "rank"), json_object_get(rank, "rank"))) continue;
        json_array_remove(list, i);
        return;
    }
}

/* In the order of ranks. */
static void insert_rank(json_t *ranks, json_t *rank)
{
    const json_int_t number = json_integer_value(json_object_get(rank, "rank"));
    size_t at = 0;
    while (at < json_array_size(ranks) &&
           json_integer_value(json_object_get(json_array_get(ranks, at), "rank")) < number)
        at++;
    json_array_insert(ranks, at, rank);
}

/* Of a communicator in its init the process with the root knows who has come. */
static void merge_missing(json_t *missing, const json_t *other)
{
    json_t *rank;
    size_t i;
    json_array_foreach(other, i, rank)
    {
        json_t *known = find_by(missing, "rank", rank);
        const char *state = json_string_value(json_object_get(known, "state"));
        if (state && !strcmp(state, "unknown")) json_object_update(known, rank);
    }
}

static void merge_comm(json_t *comm, const json_t *other)
{
    json_t *ranks = json_object_get(comm, "ranks"), *rank;
    size_t i;
    merge_missing(json_object_get(comm, "missing"), json_object_get(other, "missing"));
    json_array_foreach(json_object_get(other, "ranks"), i, rank)
    {
        if (find_by(ranks, "rank", rank)) continue;
        insert_rank(ranks, rank);
        remove_rank(json_object_get(comm, "missing"), rank);
    }
    if (json_is_null(json_object_get(comm, "verdict")))
        json_object_set(comm, "verdict", json_object_get(other, "verdict"));
}

static bool is_same(const json_t *process, const json_t *other)
{
    return json_equal(json_object_get(process, "pid"), json_object_get(other, "pid")) &&
           json_equal(json_object_get(process, "host"), json_object_get(other, "host"));
}

static void merge_job(json_t *job, const json_t *other)
{
    json_t *comms = json_object_get(job, "communicators"), *comm, *process;
    json_t *processes = json_object_get(job, "processes");
    size_t i, k;
    json_array_foreach(json_object_get(other, "communicators"), i, comm)
    {
        json_t *known = find_by(comms, "id", comm);
        if (known) {
            merge_comm(known, comm);
        } else {
            json_array_append(comms, comm);
        }
    }
    json_array_foreach(json_object_get(other, "processes"), i, process)
    {
        bool is_new = true;
        for (k = 0; k < json_array_size(processes) && is_new; k++)
            is_new = !is_same(json_array_get(processes, k), process);
        if (is_new) json_array_append(processes, process);
    }
}

bool doctor_shares_comm(const json_t *job, const json_t *other)
{
    const json_t *comms = json_object_get(job, "communicators"), *comm;
    size_t i;
    json_array_foreach(json_object_get(other, "communicators"), i, comm)
    {
        if (find_by(comms, "id", comm)) return true;
    }
    return false;
}

void doctor_merge(json_t *jobs, json_t *job)
{
    json_t *known;
    size_t i;
    json_array_foreach(jobs, i, known)
    {
        if (!job || !doctor_shares_comm(known, job)) continue;
        merge_job(known, job);
        json_decref(job);
        return;
    }
    json_array_append_new(jobs, job);
}

static bool holds(const int *pids, int n, int pid)
{
    for (int i = 0; i < n; i++) {
        if (pids[i] == pid) return true;
    }
    return false;
}

/* Of one communicator; 0: none. */
static int missing_pid(const json_t *comm, const int *asked, int nasked)
{
    const json_t *rank;
    size_t r;
    json_array_foreach(json_object_get(comm, "missing"), r, rank)
    {
        const int pid = (int)json_integer_value(json_object_get(rank, "pid"));
        if (json_is_true(json_object_get(rank, "runs")) && !holds(asked, nasked, pid)) return pid;
    }
    return 0;
}

int doctor_missing_pid(const json_t *jobs, const int *asked, int nasked)
{
    const json_t *job, *comm;
    size_t i, k;
    json_array_foreach(jobs, i, job)
    {
        json_array_foreach(json_object_get(job, "communicators"), k, comm)
        {
            const int pid = missing_pid(comm, asked, nasked);
            if (pid) return pid;
        }
    }
    return 0;
}
