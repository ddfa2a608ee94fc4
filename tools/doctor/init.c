/* In an init each process knows of its own rank only, and the one with the root who has come to it.
 * So there is no verdict before all answers are together. */
#include "doctor/init.h"

#include "base/text/rank_list.h"

#include <stdio.h>
#include <string.h>

#define STILL_SEC 1.0 /* younger waits are everyday */

static bool has_state(const json_t *rank, const char *state)
{
    const char *text = json_string_value(json_object_get(rank, "state"));
    return text && !strcmp(text, state);
}

bool doctor_in_init(const json_t *comm)
{
    const json_t *ranks = json_object_get(comm, "ranks"), *rank;
    size_t i;
    json_array_foreach(ranks, i, rank)
    {
        if (!has_state(rank, "init")) return false;
    }
    return i > 0;
}

static int number(const json_t *rank)
{
    return (int)json_integer_value(json_object_get(rank, "rank"));
}

/* Those that are missing in an answer and have come, as the root says, stand behind the others. */
static void judge(json_t *comm)
{
    const json_t *rank;
    size_t i;
    double longest_sec = 0;
    bool certain = true;
    struct tt_rank_list here = {.count = 0}, awaited = {.count = 0};
    char sentence[2 * TT_RANK_LIST_BYTES + 200];
    json_array_foreach(json_object_get(comm, "ranks"), i, rank)
    {
        const double age_sec = json_number_value(json_object_get(rank, "still_sec"));
        if (age_sec > longest_sec) longest_sec = age_sec;
        tt_rank_list_add(&here, number(rank));
    }
    json_array_foreach(json_object_get(comm, "missing"), i, rank)
    {
        const bool is_here = has_state(rank, "init");
        tt_rank_list_add(is_here ? &here : &awaited, number(rank));
        if (!is_here && !has_state(rank, "not come")) certain = false;
    }
    if (longest_sec < STILL_SEC || !awaited.count) return;
    const bool one = awaited.count == 1;
    const char *who = one ? "it" : "they", *does = one ? "does" : "do";
    snprintf(
        sentence, sizeof(sentence),
        "%s %s %s in the init of the communicator since %.1f s; %s %s %s not come%s: %s %s run, "
        "%s %s make the same call, and with this unique id?",
        here.count > 1 ? "ranks" : "rank", here.text, here.count > 1 ? "wait" : "waits",
        longest_sec, one ? "rank" : "ranks", awaited.text, one ? "has" : "have",
        certain ? "" : ", as far as those who answered know", does, who, does, who);
    json_object_set_new(comm, "verdict",
                        json_pack("{s:s, s:O, s:i, s:s}", "kind", "not come", "comm",
                                  json_object_get(comm, "id"), "rank", awaited.first, "sentence",
                                  sentence));
}

void doctor_judge_inits(json_t *job)
{
    json_t *comm;
    size_t i;
    json_array_foreach(json_object_get(job, "communicators"), i, comm)
    {
        if (json_is_null(json_object_get(comm, "verdict")) && doctor_in_init(comm)) judge(comm);
    }
}
