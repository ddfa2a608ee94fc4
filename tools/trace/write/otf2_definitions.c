/* The definitions of an archive: who, where and what its events are. */
#include "otf2_archive.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t ticks_per_second = 1000000000;

/* While definitions are written: a string is written before what refers to it. */
struct writing {
    struct otf2_archive *archive;
    OTF2_GlobalDefWriter *to;
    OTF2_StringRef nstrings;
    OTF2_GroupRef ngroups;
};

static OTF2_StringRef string_of(struct writing *writing, const char *text)
{
    struct otf2_archive *archive = writing->archive;
    otf2_check(archive, archive->otf2.string(writing->to, writing->nstrings, text));
    return writing->nstrings++;
}

static void write_clock(struct writing *writing)
{
    struct otf2_archive *archive = writing->archive;
    const struct timeline *run = archive->run;
    int64_t length_nsec = archive->lanes.end_nsec - archive->base_nsec;
    uint64_t real_nsec = OTF2_UNDEFINED_TIMESTAMP;
    for (uint32_t p = 0; p < run->nprocesses && real_nsec == OTF2_UNDEFINED_TIMESTAMP; p++) {
        const struct timeline_process *process = &run->processes[p];
        if (process->clock != 0 || !process->wall_nsec) continue;
        real_nsec = process->wall_nsec - process->mono_nsec + (uint64_t)run->origin_nsec +
                    (uint64_t)archive->base_nsec;
    }
    otf2_check(archive,
               archive->otf2.clock(writing->to, ticks_per_second, 0,
                                   length_nsec > 0 ? (uint64_t)length_nsec : 0, real_nsec));
}

static void write_attributes(struct writing *writing)
{
    struct otf2_archive *archive = writing->archive;
    for (int kind = 0; kind < FACT_KIND_COUNT_; kind++) {
        bool is_word = slice_fact_is_word((enum slice_fact_kind)kind);
        OTF2_StringRef name = string_of(writing, slice_fact_name((enum slice_fact_kind)kind));
        otf2_check(archive, archive->otf2.attribute(writing->to, (OTF2_AttributeRef)kind, name, 0,
                                                    is_word ? OTF2_TYPE_STRING : OTF2_TYPE_UINT64));
    }
    otf2_check(archive, archive->otf2.attribute(writing->to, OTF2_STATE_VALUE,
                                                string_of(writing, "value"), 0, OTF2_TYPE_UINT64));
    otf2_check(archive, archive->otf2.define_parameter(writing->to, OTF2_STATE_PARAMETER,
                                                       string_of(writing, "state"),
                                                       OTF2_PARAMETER_TYPE_STRING));
}

/* ---- where ---- */

static bool is_of_device(const struct lane *lane)
{
    return lane->kind == LANE_KERNEL || lane->kind == LANE_COPY;
}

/* The run, and below it its hosts, with what was added to their clocks. */
static void write_hosts(struct writing *writing)
{
    struct otf2_archive *archive = writing->archive;
    const struct timeline *run = archive->run;
    OTF2_StringRef machine = string_of(writing, "machine"), node = string_of(writing, "node");
    OTF2_StringRef offset = string_of(writing, "clock offset in ns");
    OTF2_StringRef error = string_of(writing, "clock error in ns");
    otf2_check(archive, archive->otf2.node(writing->to, 0, machine, machine,
                                           OTF2_UNDEFINED_SYSTEM_TREE_NODE));
    for (uint32_t c = 0; c < run->nclocks; c++) {
        const struct timeline_clock *clock = &run->clocks[c];
        OTF2_AttributeValue of_offset = {.int64 = clock->offset_nsec};
        OTF2_AttributeValue of_error = {.int64 = clock->error_nsec};
        OTF2_StringRef host = string_of(writing, clock->host);
        otf2_check(archive, archive->otf2.node(writing->to, c + 1, host, node, 0));
        otf2_check(archive, archive->otf2.node_property(writing->to, c + 1, offset, OTF2_TYPE_INT64,
                                                        of_offset));
        if (clock->error_nsec < 0) continue; /* not known */
        otf2_check(archive, archive->otf2.node_property(writing->to, c + 1, error, OTF2_TYPE_INT64,
                                                        of_error));
    }
}

/* A rank is a process; its kernels run on a device that the process made: ngroups behind it. */
static void write_ranks(struct writing *writing)
{
    struct otf2_archive *archive = writing->archive;
    const struct lanes *lanes = &archive->lanes;
    char name[200], device[220];
    uint32_t last = TIMELINE_NONE; /* lanes are in the order of groups */
    for (uint32_t g = 0; g < lanes->ngroups; g++) {
        uint32_t host = archive->run->processes[lanes->groups[g].process].clock + 1;
        lanes_group_name(archive->run, lanes, g, name, sizeof(name));
        otf2_check(archive, archive->otf2.location_group(writing->to, g, string_of(writing, name),
                                                         OTF2_LOCATION_GROUP_TYPE_PROCESS, host,
                                                         OTF2_UNDEFINED_LOCATION_GROUP));
    }
    for (uint32_t l = 0; l < lanes->nlanes; l++) {
        uint32_t group = lanes->lanes[l].group;
        if (!is_of_device(&lanes->lanes[l]) || group == last) continue;
        last = group;
        lanes_group_name(archive->run, lanes, group, name, sizeof(name));
        (void)snprintf(device, sizeof(device), "device of %s", name);
        otf2_check(archive,
                   archive->otf2.location_group(
                       writing->to, lanes->ngroups + group, string_of(writing, device),
                       OTF2_LOCATION_GROUP_TYPE_ACCELERATOR,
                       archive->run->processes[lanes->groups[group].process].clock + 1, group));
    }
}

static void write_locations(struct writing *writing)
{
    struct otf2_archive *archive = writing->archive;
    const struct lanes *lanes = &archive->lanes;
    char name[200];
    for (uint32_t l = 0; l < lanes->nlanes; l++) {
        const struct lane *lane = &lanes->lanes[l];
        bool device = is_of_device(lane);
        lanes_name(archive->run, lane, name, sizeof(name));
        otf2_check(archive,
                   archive->otf2.location(writing->to, l, string_of(writing, name),
                                          device ? OTF2_LOCATION_TYPE_ACCELERATOR_STREAM
                                                 : OTF2_LOCATION_TYPE_CPU_THREAD,
                                          archive->nevents[l],
                                          device ? lanes->ngroups + lane->group : lane->group));
    }
}

/* ---- what ---- */

static OTF2_RegionRole role_of(const struct timeline *run, const struct slice_name *name)
{
    static const struct {
        const char *func;
        OTF2_RegionRole role;
    } roles[] = {
        {"AllReduce", OTF2_REGION_ROLE_COLL_ALL2ALL},
        {"AllGather", OTF2_REGION_ROLE_COLL_ALL2ALL},
        {"ReduceScatter", OTF2_REGION_ROLE_COLL_ALL2ALL},
        {"AlltoAll", OTF2_REGION_ROLE_COLL_ALL2ALL},
        {"Broadcast", OTF2_REGION_ROLE_COLL_ONE2ALL},
        {"Scatter", OTF2_REGION_ROLE_COLL_ONE2ALL},
        {"Reduce", OTF2_REGION_ROLE_COLL_ALL2ONE},
        {"Gather", OTF2_REGION_ROLE_COLL_ALL2ONE},
    };
    switch ((enum timeline_type)name->type) {
    case TIMELINE_GROUP_API:
    case TIMELINE_COLL_API:
    case TIMELINE_P2P_API: return OTF2_REGION_ROLE_WRAPPER;
    case TIMELINE_P2P: return OTF2_REGION_ROLE_POINT2POINT;
    case TIMELINE_PROXY_STEP:
    case TIMELINE_NET_PLUGIN:
    case TIMELINE_CE_BATCH: return OTF2_REGION_ROLE_DATA_TRANSFER;
    case TIMELINE_COLL:
    case TIMELINE_CE_COLL: break;
    default: return OTF2_REGION_ROLE_FUNCTION;
    }
    for (size_t k = 0; k < TT_LEN(roles); k++) {
        if (!strcmp(roles[k].func, timeline_word(run, name->func))) return roles[k].role;
    }
    return OTF2_REGION_ROLE_COLL_OTHER;
}

static void write_regions(struct writing *writing)
{
    struct otf2_archive *archive = writing->archive;
    const struct slice_names *names = &archive->names;
    char name[TIMELINE_NAME_BYTES];
    for (uint32_t r = 0; r < names->count; r++) {
        OTF2_StringRef type = (OTF2_StringRef)names->list[r].type + 1; /* its word */
        slice_name_text(archive->run, &names->list[r], name);
        OTF2_StringRef text = string_of(writing, name);
        otf2_check(archive,
                   archive->otf2.region(writing->to, r, text, text, type,
                                        role_of(archive->run, &names->list[r]), OTF2_PARADIGM_USER,
                                        OTF2_REGION_FLAG_NONE, 0, 0, 0));
    }
}

/* Regions of one type are a group, so that tools can show or colour them together. */
static void write_types(struct writing *writing, uint64_t *members)
{
    struct otf2_archive *archive = writing->archive;
    const struct slice_names *names = &archive->names;
    for (int type = 0; type < TIMELINE_TYPE_COUNT_; type++) {
        uint32_t count = 0;
        for (uint32_t r = 0; r < names->count; r++) {
            if (names->list[r].type == type) members[count++] = r;
        }
        if (count == 0) continue;
        otf2_check(archive,
                   archive->otf2.group(writing->to, writing->ngroups++, (OTF2_StringRef)type + 1,
                                       OTF2_GROUP_TYPE_REGIONS, OTF2_PARADIGM_UNKNOWN,
                                       OTF2_GROUP_FLAG_NONE, count, members));
    }
}

/* ---- communicators ---- */

/* Locations that stand for ranks; `number` gets those of the groups of lanes. */
static void write_stations(struct writing *writing, uint64_t *members, uint64_t *number)
{
    struct otf2_archive *archive = writing->archive;
    uint32_t count = 0;
    for (uint32_t g = 0; g < archive->lanes.ngroups; g++) {
        if (archive->station[g] == TIMELINE_NONE) continue;
        number[g] = count;
        members[count++] = archive->station[g];
    }
    if (count == 0) return;
    otf2_check(archive,
               archive->otf2.group(writing->to, writing->ngroups++, string_of(writing, "ranks"),
                                   OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI,
                                   OTF2_GROUP_FLAG_NONE, count, members));
}

static void write_comms(struct writing *writing, uint64_t *members, const uint64_t *number)
{
    struct otf2_archive *archive = writing->archive;
    for (uint32_t s = 0, next; s < archive->nranks; s = next) {
        uint32_t comm = archive->ranks[s].comm;
        const struct timeline_comm *about = &archive->run->comms[comm];
        char name[TIMELINE_NAME_BYTES + 40];
        for (next = s; next < archive->nranks && archive->ranks[next].comm == comm; next++)
            members[next - s] = number[archive->ranks[next].group];
        (void)snprintf(name, sizeof(name), "communicator %016llx%s%s",
                       (unsigned long long)about->id, *about->name ? " " : "", about->name);
        OTF2_StringRef text = string_of(writing, name);
        OTF2_GroupRef group = writing->ngroups++;
        otf2_check(archive,
                   archive->otf2.group(writing->to, group, text, OTF2_GROUP_TYPE_COMM_GROUP,
                                       OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE, next - s, members));
        otf2_check(archive, archive->otf2.comm(writing->to, comm, text, group, OTF2_UNDEFINED_COMM,
                                               OTF2_COMM_FLAG_NONE));
    }
}

void otf2_write_definitions(struct otf2_archive *archive)
{
    struct writing writing = {archive, archive->otf2.global(archive->archive), 0, 0};
    size_t most = archive->names.count + (size_t)archive->lanes.ngroups + archive->nranks + 1;
    uint64_t *members = tt_calloc(most, sizeof(*members));
    uint64_t *number = tt_calloc(archive->lanes.ngroups + (size_t)1, sizeof(*number));
    if (!writing.to || !members || !number) {
        otf2_check(archive, OTF2_ERROR_PROCESSED_WITH_FAULTS);
    } else {
        write_clock(&writing);
        for (uint32_t w = 0; w < archive->run->nwords; w++)
            (void)string_of(&writing, archive->run->words[w]);
        write_attributes(&writing);
        write_hosts(&writing);
        write_ranks(&writing);
        write_locations(&writing);
        write_regions(&writing);
        write_types(&writing, members);
        write_stations(&writing, members, number);
        write_comms(&writing, members, number);
        otf2_check(archive, archive->otf2.close_global(archive->archive, writing.to));
    }
    free(members);
    free(number);
}
