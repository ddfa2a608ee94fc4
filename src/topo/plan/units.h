/* The nodes of a communicator whose devices are those of machine files. A unit is a node: a host,
 * or all hosts of an NVLink domain. Ranks of a unit are counted from 0 in the order of the
 * communicator's ranks. Private to the sub-room. */
#pragma once

#include "topo/plan/machine.h"
#include "topo/topo.h"

struct tt_topo_unit {
    const int *rank; /* borrowed from tt_topo_units, ascending: ranks of the communicator */
    int count;
};

struct tt_topo_units {
    const struct tt_topo_machine *machine; /* borrowed */
    int nunits;
    int *unit_of;                    /* owned; of every host */
    int *member, *first;             /* owned; ranks by unit; unit u's begin at first[u] */
    struct tt_topo_domain **domains; /* owned, of every unit that has searched; else NULL */
    int *ndomains;                   /* owned; of every unit */
};

/* Find the nodes of a communicator. `units` begins as zeros; end it with tt_topo_units_fini(), also
 * after an error. `machine` must live as long. Errors: ncclSystemError (memory). */
ncclResult_t tt_topo_units_init(struct tt_topo_units *units, const struct tt_topo_machine *machine);
/* Free what `units` owns, searched domains included. Accepts zeros. */
void tt_topo_units_fini(struct tt_topo_units *units);

/* Ranks of unit `u`. */
struct tt_topo_unit tt_topo_unit_at(const struct tt_topo_units *units, int u);
/* The elements of the machine files that unit `u`'s ranks use, and the options to build them with.
 * part  its root is owned by the caller, also after an error: tt_xml_free()
 * Errors: ncclInvalidUsage naming a host whose file lacks a device that a rank uses;
 * ncclSystemError (memory). */
ncclResult_t tt_topo_unit_part(const struct tt_topo_units *units, int u, struct tt_topo_file *part,
                               struct tt_topo_options *options);
/* Search the channel graphs of unit `u`: sets domains[u] and ndomains[u].
 * Errors: as tt_topo_unit_part() and tt_topo_domains_make(). */
ncclResult_t tt_topo_unit_search(struct tt_topo_units *units, int u);
/* The domain of rank `rank` in unit `u`, which has been searched. */
const struct tt_topo_domain *tt_topo_unit_domain(const struct tt_topo_units *units, int u,
                                                 int rank);
