/* The figures beside the built-in ones, in words and as JSON. */
#include "tune.h"

#include <math.h>
#include <stdio.h>

enum { FAR = 20 };

/* So that four digits are seen, whatever the size. */
static int decimals(double value)
{
    double size = fabs(value);
    return size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 5;
}

bool tune_figures_compare(const struct tt_tune_host *host, unsigned kept, json_t *list)
{
    struct tt_tune_host found = *host;
    struct tt_tune_host builtin = tt_tune_host_default;
    bool sane = true;
    fprintf(stderr, "tutti tune: %-24s %12s %12s\n", "figure", "here", "built-in");
    for (int f = 0; f < TT_TUNE_FIGURES; f++) {
        double here = *tt_tune_host_figure(&found, f);
        double there = *tt_tune_host_figure(&builtin, f);
        bool far = here > FAR * there || there > FAR * here, measured = !(kept & (1U << f));
        const char *remark = !measured ? "  not measured" : far ? "  in doubt" : "";
        fprintf(stderr, "tutti tune: %-24s %12.*f %12.*f%s\n", tt_tune_host_name(f), decimals(here),
                here, decimals(there), there, remark);
        json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:b, s:b}", "name",
                                              tt_tune_host_name(f), "value", here, "built_in",
                                              there, "measured", measured, "in_doubt", far));
        sane = sane && !far;
    }
    if (!sane)
        fprintf(stderr, "tutti tune: a figure is more than %d times off the built-in one\n", FAR);
    return sane;
}

json_t *tune_figures_json(const struct tt_tune_host *host)
{
    struct tt_tune_host found = *host, builtin = tt_tune_host_default;
    json_t *list = json_array();
    for (int f = 0; f < TT_TUNE_FIGURES; f++) {
        json_array_append_new(list, json_pack("{s:s, s:f, s:f}", "name", tt_tune_host_name(f),
                                              "value", *tt_tune_host_figure(&found, f), "built_in",
                                              *tt_tune_host_figure(&builtin, f)));
    }
    return list;
}
