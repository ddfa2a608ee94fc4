/* Built without the headers of elfutils' libdw. */
#include "doctor/stacks.h"

#include <stdio.h>

void doctor_add_stacks(json_t *job, const int *pids, int npids)
{
    json_t *process;
    size_t i;
    (void)pids;
    (void)npids;
    json_array_foreach(json_object_get(job, "processes"), i, process) json_object_set_new(
        process, "stacks_missing", json_string("this command was built without elfutils' libdw"));
}

void doctor_show_stacks(const json_t *job)
{
    if (json_array_size(json_object_get(job, "processes")))
        puts("stacks: this command was built without elfutils' libdw");
}
