/* The sequences of calls that a communicator makes into a profiler plugin, as one thread plays
 * them: caller, launch, network and kernel in the order in which they would come. */
#pragma once

#include "check.h"

#include "base/member.h"
#include "plugin/profiler/profiler.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { DRIVE_HANDLES = 64, DRIVE_WRONG = 8 };

struct drive { /* one communicator, one rank */
    struct tt_member member;
    struct tt_profiler *profiler;
    struct check_case_state *state;
    uint32_t mask;   /* what the calls are made with */
    uint64_t number; /* of the next AllReduce */
    uint64_t calls;
    pid_t pid;                 /* of whose operations the network is driven */
    struct drive_freed *freed; /* owned by the case; NULL: events are not looked after */
    /* Where the last events' handles were stored, which is the plugin's during the call alone. */
    struct {
        void *stored, *event;
        uint64_t type;
    } handles[DRIVE_HANDLES];
    uint64_t nhandles; /* ever */
    struct {           /* results that are none, each call once; said at drive_close() */
        int call;
        uint64_t detail;
        int rc;
    } wrong[DRIVE_WRONG];
    int nwrong;
    bool at_once; /* its init may be called while another one is, as in NCCL */
};

/* The last call, for a report. */
enum { DRIVE_INIT = 1, DRIVE_START, DRIVE_HANDLE, DRIVE_STOP, DRIVE_STATE, DRIVE_FINALIZE };

/* Init; false when the plugin cannot be loaded or declines (said in the note). */
bool drive_open(struct drive *drive, int rank, int nranks, uint64_t comm_id,
                struct check_case_state *state);
/* The same from several threads at once: one does not wait for the init of another. */
bool drive_open_at_once(struct drive *drive, int rank, int nranks, uint64_t comm_id,
                        struct check_case_state *state);
/* Finalize, and a breach for each call whose result or handle was wrong: one thread at a time. */
void drive_close(struct drive *drive);
/* "startEvent of type 2 (Coll)": a call as `state` has it. */
void drive_say(int call, uint64_t detail, char *text, size_t text_bytes);

struct drive_call { /* handles of one collective or message */
    void *group_api, *api, *group, *op_event;
};

/* The application's part: GroupApi, CollApi (P2pApi), launch, Group, Coll (P2p). */
void drive_call_begin(struct drive *drive, struct drive_call *call, const char *func);
/* GroupEnd returns. */
void drive_call_end(struct drive *drive, struct drive_call *call);
/* A captured graph runs: Group and Coll again under the API call of the capture. */
void drive_replay(struct drive *drive, struct drive_call *call);
/* Network and kernel: ProxyOp with steps in both directions and KernelCh, on these channels. */
void drive_work(struct drive *drive, const struct drive_call *call, int first_channel,
                int nchannels, int nsteps);
/* The same without KernelCh, on one channel: what a proxy does for another process. */
void drive_network(struct drive *drive, const struct drive_call *call, int nsteps);
/* Copies by engines under the API call, and the phases of a kernel under the operation: versions 6
 * and 7. */
void drive_copies(struct drive *drive, const struct drive_call *call);
void drive_phases(struct drive *drive, const struct drive_call *call);
/* The proxy's own states: idle, active, sleep and wake-up. */
void drive_control(struct drive *drive);
/* One AllReduce over the network: 2 channels, 2 steps per direction. */
void drive_allreduce(struct drive *drive);

/* What the plugin frees at stops is kept and looked at, in one thread. Lives as long as the process
 * of the case. */
struct drive_freed *drive_freed_create(void);
/* After the stop of `event`: was it freed? */
void drive_freed_take(struct drive_freed *freed, const void *event);
/* True when an event was written to after it was freed. */
bool drive_freed_written(const struct drive_freed *freed);

/* Start without an end: what an aborted communicator of another host leaves. */
void *drive_start(struct drive *drive, ncclProfilerEventDescr_v7_t *descr);
