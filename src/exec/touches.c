/* What a work reports to the race checker: the memory that it reads and writes, and with whom it
 * meets.
 */
#include "exec/host/cursor.h"
#include "exec/step.h"

/* Which ranks wait for which in a collective, whatever program it runs. */
static enum tt_sync_role sync_role_of(const struct tt_frame *frame)
{
    const struct tt_program *program = frame->program;
    bool from = tt_func_from_root((enum tt_func)program->func);
    if (!from && !tt_func_to_root((enum tt_func)program->func)) return TT_SYNC_ALL;
    return (frame->rank == program->root) == from ? TT_SYNC_SOURCE : TT_SYNC_SINK;
}

/* Messages to one peer keep their order: the first of them. */
static int first_of(const struct tt_work *work, int f)
{
    while (work->frames[f].after) {
        f = work->frames[f].after - 1;
    }
    return f;
}

void tt_touch_buffers(const struct tt_touched *touched)
{
    const char *in = touched->in, *in_end = in + touched->in_bytes;
    const char *out = touched->out, *end = out + touched->out_bytes;
    const char *from = end, *to = end; /* what is kept of it */
    bool kept = tt_func_keeps_given(touched->func, touched->root);
    if (kept && in < end && in_end > out) {
        from = in < out ? out : in;
        to = in_end > end ? end : in_end;
    }
    tuttiHostTouch(in, touched->in_bytes, false);
    tuttiHostTouch(out, (size_t)(from - out), true);
    tuttiHostTouch(to, (size_t)(end - to), true);
}

/* Calls of a group, and messages to different peers, run side by side. */
static int part_of(const struct tt_work *work, int f)
{
    if (work->frames[f].conn == TT_CONN_P2P) return first_of(work, f);
    while (f > 0 && !work->frames[f].begins)
        f--;
    return f;
}

/* A call of one rank is a copy, whatever it reduces: the program says no more. */
static const char *name_of(const struct tt_frame *frame)
{
    const struct tt_program *program = frame->program;
    return tt_func_name((enum tt_func)(program->nranks == 1 ? frame->call.func : program->func));
}

static void report_message(const struct tt_work *work, const struct tt_frame *frame)
{
    const struct tt_program *program = frame->program;
    int rank = work->member->rank;
    bool sends = program->func == TT_FUNC_SEND;
    const struct tt_peer_message message = {.group = work->member->comm_id,
                                            .from = sends ? rank : program->root,
                                            .to = sends ? program->root : rank};
    if (sends || program->func == TT_FUNC_RECV) tuttiHostTouchMessage(&message, sends);
}

void tt_work_report_touches(const struct tt_work *work)
{
    bool on_buffers = work->nentered > 0; /* then the frames' buffers may be staging */
    for (int f = 0; f < work->nframes; f++) {
        const struct tt_frame *frame = &work->frames[f];
        tuttiHostTouchPart(part_of(work, f));
        tuttiHostTouchCall(name_of(frame), 0);
        const struct tt_touched touched = {.func = (enum tt_func)frame->program->func,
                                           .root = frame->rank == frame->program->root,
                                           .in = on_buffers ? work->user_in : frame->in,
                                           .out = on_buffers ? work->user_out : frame->out,
                                           .in_bytes = frame->in_bytes,
                                           .out_bytes = frame->out_bytes};
        tt_touch_buffers(&touched);
        if (frame->reduction.pre_mul && frame->reduction.scalar_on_device)
            tuttiHostTouch(frame->reduction.scalar_ptr, frame->elem_bytes, false);
    }
    tuttiHostTouchName(name_of(&work->frames[0]));
    for (int f = 0; f < work->nframes; f++) {
        const struct tt_frame *frame = &work->frames[f];
        bool syncs = frame->conn == TT_CONN_COLL;
        if (!syncs) report_message(work, frame);
        if (f > 0 && (!syncs || !frame->begins)) continue;
        const struct tt_collective collective = {.group = work->member->comm_id,
                                                 .nranks = work->member->nranks,
                                                 .role =
                                                     syncs ? sync_role_of(frame) : TT_SYNC_NONE};
        tuttiHostTouchCollective(work->member, &collective);
    }
}
