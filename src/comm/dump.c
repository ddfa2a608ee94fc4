/* What ranks write down when asked: the machine (NCCL_TOPO_DUMP_FILE) and the channel graphs
 * (NCCL_GRAPH_DUMP_FILE), each by one rank. A dump that fails is a warning, never an error. */
#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "base/system/file.h"
#include "comm/init.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_asked(const struct tt_comm *comm, const char *file, const char *rank)
{
    const char *path = tt_param_str(file);
    return path && *path && comm->member.rank == tt_param_int(rank);
}

/* Takes the text over. */
static void write_down(const char *variable, char *text)
{
    const char *path = tt_param_str(variable);
    FILE *out = tt_file_create(path);
    bool done = out && fputs(text, out) >= 0;
    if (out && fclose(out)) done = false;
    if (done) {
        tt_info(TT_LOG_INIT | TT_LOG_GRAPH, "%s: written to %s", variable, path);
    } else {
        tt_warn_setting("%s: %s cannot be written: %m", variable, path);
    }
    free(text);
}

static ncclResult_t machine_here(char **text_out)
{
    struct tt_topo_file *file = NULL;
    ncclResult_t rc = tt_topo_detect(&file);
    if (rc) return rc;
    *text_out = tt_topo_file_print(file);
    tt_topo_file_free(file);
    return *text_out ? ncclSuccess : tt_fail(ncclSystemError, "topology: out of memory");
}

void tt_machine_dump(const struct tt_init *init, const struct tt_agreement *agreed)
{
    const struct tt_comm *comm = init->comm;
    int rank = comm->member.rank;
    bool emulates = comm->topo.layout != NULL;
    char *text = NULL;
    if (is_asked(comm, "NCCL_TOPO_DUMP_FILE", "NCCL_TOPO_DUMP_FILE_RANK")) {
        int node = agreed->ranks[rank].node;
        ncclResult_t rc =
            emulates ? tt_topo_machine_dump(&init->emulated, node, &text) : machine_here(&text);
        if (!rc) write_down("NCCL_TOPO_DUMP_FILE", text);
    }
    if (!is_asked(comm, "NCCL_GRAPH_DUMP_FILE", "NCCL_GRAPH_DUMP_FILE_RANK")) return;
    text = NULL;
    if (!emulates) {
        tt_warn_setting(
            "NCCL_GRAPH_DUMP_FILE: rings and trees over flat hosts have no graphs; nothing is "
            "written (NCCL_TOPO_FILE gives them a machine)");
    } else if (!tt_topo_machine_graphs(&init->emulated, rank, &text)) {
        write_down("NCCL_GRAPH_DUMP_FILE", text);
    }
}
