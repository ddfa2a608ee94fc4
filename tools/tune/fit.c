/* From measured times to the figures of the model: its formulas, solved for what stands in them. */
#include "tune.h"

enum { PHASE, SWITCH, NET_PHASE, TOUCH, DIRECT, SLOT, CROWDED_SLOT, NET_BYTES };

struct fit {
    struct tt_tune_host host;
    unsigned kept;
};

static bool measured(double usec)
{
    return usec > 0;
}

/* Take a figure when it makes sense: disturbed samples may contradict each other. */
static void take(struct fit *fit, int figure, double value)
{
    double *at = tt_tune_host_figure(&fit->host, figure);
    const double builtin = *at;
    if (!(value > builtin / 1000 && value < builtin * 1000)) {
        fit->kept |= 1U << figure;
        return;
    }
    *at = value;
}

/* 2 and 4 ranks to a core, 8 bytes: t = load * switch + load * (n - 2) * touch, n = load * cores.
 */
static void fit_oversubscribed(struct fit *fit, const struct tune_samples *s)
{
    double touch = (s->shared4_8 - 2 * s->shared2_8) / (8 * s->cores);
    if (!measured(s->shared2_8) || !measured(s->shared4_8)) touch = -1;
    take(fit, TOUCH, touch);
    double slots = 2 * (2 * s->cores - 2) * fit->host.touch_usec;
    take(fit, SWITCH, measured(s->shared2_8) ? (s->shared2_8 - slots) / 2 : -1);
}

/* Two ranks, a core each. */
static void fit_pair(struct fit *fit, const struct tune_samples *s)
{
    take(fit, PHASE, s->oneshot_8);
    double moving = s->oneshot_64k - fit->host.phase_usec; /* 2n - 1 parts of 64 KiB */
    take(fit, SLOT, measured(s->oneshot_64k) ? 3 * 65536.0 / moving : -1);
    moving = s->direct_1m - 2 * fit->host.phase_usec;
    take(fit, DIRECT, measured(s->direct_1m) ? 2 * 1048576.0 / moving : -1);
}

void tune_fit(const struct tune_samples *s, struct tt_tune_host *host_out, unsigned *kept_out)
{
    struct fit fit = {.host = tt_tune_host_default};
    double n = 2.0 * s->cores;
    fit_pair(&fit, s);
    fit_oversubscribed(&fit, s);
    double moving = s->shared2_64k / 2 - fit.host.switch_usec - (n - 2) * fit.host.touch_usec;
    take(&fit, CROWDED_SLOT,
         measured(s->shared2_64k) && moving > 0 ? (2 * n - 1) * 65536.0 / moving : -1);
    take(&fit, NET_PHASE, measured(s->net_8) ? s->net_8 / 2 : -1); /* two hops */
    moving = s->net_1m - 2 * fit.host.net_phase_usec - 4 * 1048576.0 / fit.host.slot_bytes_usec;
    take(&fit, NET_BYTES, measured(s->net_1m) && moving > 0 ? 1048576.0 / moving : -1);
    *host_out = fit.host;
    *kept_out = fit.kept;
}
