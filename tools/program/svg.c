/* `tutti program show --svg`: a space-time diagram. Ranks stand side by side, steps go down; what a
 * rank holds after the messages of a step is in its box there, arrows run between the rows of boxes
 * only, and columns are as wide as their longest text, so that nothing overlaps. */
#include "base/mem.h"
#include "program_tool.h"

#include <stdlib.h>
#include <string.h>

enum {
    MARGIN = 24,
    LEFT = 90, /* px for the names of steps */
    TOP = 132,
    HEAD = 28, /* px of a rank's name */
    BAND = 58, /* px of arrows between rows */
    LINE = 15, /* px of a line in a box */
    SIZE = 11, /* of letters */
    NARROWEST = 900,
    MOST_MESSAGES = 600, /* beyond them one chunk is drawn */
    MOST_TITLE = 56,     /* bytes */
    COLOURS = 10,
};
static const char *const colours[COLOURS] = {"#dc2626", "#2563eb", "#15803d", "#b45309", "#9333ea",
                                             "#0e7490", "#be185d", "#4d7c0f", "#4338ca", "#57534e"};

struct line { /* of a box: these chunks hold those ranks' inputs */
    int step, rank, first, last;
    uint64_t parts;
};

struct diagram {
    FILE *out;                        /* borrowed */
    const struct tt_program *program; /* borrowed */
    const struct tt_flow *flow;       /* borrowed */
    int nranks, nsteps, chunk;        /* -1: all chunks */
    int nhosts;                       /* in order of ranks; 1: nothing is drawn of them */
    const int
        *host_first;    /* borrowed: rank at which each begins, and the end; NULL: as many each */
    const char *arrow;  /* what one means, beside a message */
    struct line *lines; /* owned, by step, rank and contents */
    size_t nlines;
    struct tt_flow_message *arrows; /* owned, by step and ranks */
    size_t narrows;
    double column, width;
    double *y; /* owned; where the boxes of each step begin; [nsteps + 1] is the end */
};

static bool drawn(const struct diagram *diagram, const struct tt_flow_message *message)
{
    return diagram->chunk < 0 || message->chunk == diagram->chunk;
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_contents(const void *a, const void *b)
{
    const struct line *left = a, *right = b;
    int order = compare(left->step, right->step);
    if (!order) order = compare(left->rank, right->rank);
    if (!order) order = (left->parts > right->parts) - (left->parts < right->parts);
    return order ? order : compare(left->first, right->first);
}

static int by_ranks(const void *a, const void *b)
{
    const struct tt_flow_message *left = a, *right = b;
    int order = compare(left->step, right->step);
    if (!order) order = compare(left->from, right->from);
    if (!order) order = compare(left->to, right->to);
    return order ? order : compare(left->chunk, right->chunk);
}

/* ---- words ---- */

/* "3..5: 0+2..4" */
static void line_text(const struct diagram *diagram, const struct line *line, char *text,
                      size_t bytes)
{
    int n = diagram->nranks;
    uint64_t all = n >= 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
    int at = line->first == line->last ? snprintf(text, bytes, "%d: ", line->first)
                                       : snprintf(text, bytes, "%d..%d: ", line->first, line->last);
    if (line->parts == all) (void)snprintf(text + at, bytes - (size_t)at, "all");
    const char *between = "";
    for (int r = 0; r < n && line->parts != all && (size_t)at + 16 < bytes; r++) {
        int last = r;
        if (!(line->parts >> r & 1)) continue;
        while (last + 1 < n && line->parts >> (last + 1) & 1)
            last++;
        if (last - r < 2) last = r; /* "0+1", "0..2" */
        at += last > r ? snprintf(text + at, bytes - (size_t)at, "%s%d..%d", between, r, last)
                       : snprintf(text + at, bytes - (size_t)at, "%s%d", between, r);
        between = "+";
        r = last;
    }
}

/* "ranks 0, 2 to 4 and 6" */
static void ranks_text(const struct diagram *diagram, uint64_t parts, char *text, size_t bytes)
{
    int n = diagram->nranks, count = __builtin_popcountll(parts);
    if (count == n) {
        (void)snprintf(text, bytes, "the inputs of all ranks");
        return;
    }
    int at = snprintf(text, bytes, count > 1 ? "the inputs of ranks " : "the input of rank ");
    const char *between = "";
    for (int r = 0; r < n && (size_t)at + 32 < bytes; r++) {
        if (!(parts >> r & 1)) continue;
        int last = r;
        while (last + 1 < n && parts >> (last + 1) & 1)
            last++;
        if (last - r < 2) last = r;
        bool is_end = last == 63 || !(parts >> (last + 1));
        at += snprintf(text + at, bytes - (size_t)at, "%s%d",
                       is_end && *between ? " and " : between, r);
        if (last > r) at += snprintf(text + at, bytes - (size_t)at, " to %d", last);
        between = ", ";
        r = last;
    }
}

/* px that it takes, at most. */
static double text_width(const char *text)
{
    double width = 0;
    for (; *text; text++) {
        bool thin = *text == '.' || *text == ':' || *text == ' ';
        width += SIZE * (*text == '+' ? 0.86 : thin ? 0.36 : 0.66);
    }
    return width;
}

static void put_text(const struct diagram *diagram, double x, double y, int size, const char *style,
                     const char *text)
{
    (void)fprintf(diagram->out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" %s>", x, y, size,
                  style);
    for (; *text; text++) {
        switch (*text) {
        case '&': (void)fputs("&amp;", diagram->out); break;
        case '<': (void)fputs("&lt;", diagram->out); break;
        case '>': (void)fputs("&gt;", diagram->out); break;
        default: (void)fputc((unsigned char)*text < ' ' ? ' ' : *text, diagram->out); break;
        }
    }
    (void)fputs("</text>\n", diagram->out);
}

/* ---- where things stand ---- */

static void collect(struct diagram *diagram)
{
    for (size_t k = 0; k < diagram->flow->nmessages; k++) {
        const struct tt_flow_message *message = &diagram->flow->messages[k];
        if (!drawn(diagram, message)) continue;
        diagram->arrows[diagram->narrows++] = *message;
        diagram->lines[diagram->nlines++] = (struct line){
            message->step, message->to, message->chunk, message->chunk, message->parts};
    }
    if (!diagram->nlines) return;
    qsort(diagram->lines, diagram->nlines, sizeof(*diagram->lines), by_contents);
    qsort(diagram->arrows, diagram->narrows, sizeof(*diagram->arrows), by_ranks);
    size_t kept = 0;
    for (size_t k = 1; k < diagram->nlines; k++) {
        struct line *last = &diagram->lines[kept], *line = &diagram->lines[k];
        bool is_next = last->step == line->step && last->rank == line->rank &&
                       last->parts == line->parts && line->first <= last->last + 1;
        if (is_next) {
            last->last = line->last;
        } else {
            diagram->lines[++kept] = *line;
        }
    }
    diagram->nlines = kept + 1;
}

/* Lines of the box from line k on. */
static size_t box_lines(const struct diagram *diagram, size_t k)
{
    size_t end = k;
    while (end < diagram->nlines && diagram->lines[end].step == diagram->lines[k].step &&
           diagram->lines[end].rank == diagram->lines[k].rank)
        end++;
    return end - k;
}

static void layout(struct diagram *diagram)
{
    char text[512];
    double widest = 48;
    for (size_t k = 0; k < diagram->nlines; k++) {
        line_text(diagram, &diagram->lines[k], text, sizeof(text));
        widest = text_width(text) > widest ? text_width(text) : widest;
    }
    diagram->column = widest + 34;
    diagram->width = LEFT + diagram->column * diagram->nranks + MARGIN;
    if (diagram->width < NARROWEST) diagram->width = NARROWEST;
    for (int step = 0; step <= diagram->nsteps + 1; step++)
        diagram->y[step] = 1; /* lines */
    for (size_t k = 0; k < diagram->nlines; k += box_lines(diagram, k)) {
        double *most = &diagram->y[diagram->lines[k].step];
        double count = (double)box_lines(diagram, k);
        if (count > *most) *most = count;
    }
    double y = TOP + HEAD + BAND;
    for (int step = 1; step <= diagram->nsteps + 1; step++) {
        double lines = diagram->y[step];
        diagram->y[step] = y;
        y += LINE * lines + 10 + BAND;
    }
}

static double lane(const struct diagram *diagram, int rank)
{
    return LEFT + diagram->column * (rank + 0.5);
}

/* ---- drawing ---- */

/* The box whose line says most: of many ranks, but not of all. */
static const struct line *example(const struct diagram *diagram)
{
    const struct line *best = &diagram->lines[0];
    int most = 0;
    for (size_t k = 0; k < diagram->nlines; k++) {
        int parts = __builtin_popcountll(diagram->lines[k].parts);
        if (parts == diagram->nranks || parts <= most) continue;
        most = parts;
        best = &diagram->lines[k];
    }
    return best;
}

static bool joins(const struct tt_flow_message *a, const struct tt_flow_message *b)
{
    return a->step == b->step && a->from == b->from && a->to == b->to;
}

static bool has_thick(const struct diagram *diagram)
{
    for (size_t k = 1; k < diagram->narrows; k++) {
        if (joins(&diagram->arrows[k - 1], &diagram->arrows[k])) return true;
    }
    return false;
}

/* Whose a chunk is, by its number. */
static void report_owner(const struct diagram *diagram, char *text, size_t bytes)
{
    const struct tt_program *program = diagram->program;
    const char *what = program->in_blocks ? "for rank" : "of rank";
    if (!program->in_blocks && !program->out_blocks) return;
    if (program->nparts == 1) {
        (void)snprintf(text, bytes, " Chunk k is %s k.", what);
    } else {
        (void)snprintf(text, bytes, " Chunks 0 to %d are %s 0, and so on.", program->nparts - 1,
                       what);
    }
}

static void put_legend(const struct diagram *diagram)
{
    static const char *const plain = "fill=\"#374151\"";
    char text[600], ranks[200], what[64], shown[256], owner[64] = "";
    report_owner(diagram, owner, sizeof(owner));
    (void)snprintf(text, sizeof(text), "Time goes down; an arrow is %s%s.%s", diagram->arrow,
                   has_thick(diagram) ? ", a thick one of several chunks" : "", owner);
    put_text(diagram, MARGIN, 58, 12, plain, text);
    put_text(diagram, MARGIN, 75, 12, plain,
             "A box says which chunks came in the step and, after the colon, which ranks' inputs "
             "are in them.");
    if (!diagram->nlines) return;
    const struct line *line = example(diagram);
    line_text(diagram, line, shown, sizeof(shown));
    ranks_text(diagram, line->parts, ranks, sizeof(ranks));
    if (line->last > line->first) {
        (void)snprintf(what, sizeof(what), "chunks %d to %d", line->first, line->last);
    } else {
        (void)snprintf(what, sizeof(what), "chunk %d", line->first);
    }
    int at = snprintf(text, sizeof(text), "\"%.60s\": %s %s %.120s. ", shown, what, "with", ranks);
    char *rest = text + at;
    size_t room = sizeof(text) - (size_t)at;
    if (diagram->chunk >= 0) {
        (void)snprintf(rest, room, "Only chunk %d is drawn.", diagram->chunk);
    } else {
        (void)snprintf(rest, room, "Colours tell chunks apart.");
    }
    put_text(diagram, MARGIN, 92, 12, plain, text);
}

static void put_head(const struct diagram *diagram, const char *title)
{
    char text[200];
    double height = diagram->y[diagram->nsteps + 1] - BAND + MARGIN;
    (void)fprintf(diagram->out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                  "viewBox=\"0 0 %.0f %.0f\" font-family=\"DejaVu Sans, Helvetica, Arial, "
                  "sans-serif\">\n<defs>\n",
                  diagram->width, height, diagram->width, height);
    for (int c = 0; c < COLOURS; c++) {
        (void)fprintf(diagram->out,
                      "<marker id=\"tip%d\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
                      "markerWidth=\"8\" markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" "
                      "orient=\"auto\"><path d=\"M0 0.5L8 4L0 7.5z\" fill=\"%s\" "
                      "stroke-width=\"0\"/></marker>\n",
                      c, colours[c]);
    }
    (void)fputs("</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n", diagram->out);
    size_t most = strlen(title) > MOST_TITLE ? MOST_TITLE : strlen(title);
    while (((unsigned char)title[most] & 0xc0) == 0x80) /* not inside of a character */
        most--;
    (void)snprintf(text, sizeof(text), "%.*s", (int)most, title);
    put_text(diagram, MARGIN, 36, 17, "font-weight=\"bold\" fill=\"#111827\"", text);
    put_legend(diagram);
}

/* Above their ranks; a line goes down between them. */
static void put_hosts(const struct diagram *diagram)
{
    char text[32];
    double end = diagram->y[diagram->nsteps + 1] - BAND;
    for (int host = 0; diagram->nhosts > 1 && host < diagram->nhosts; host++) {
        int even = diagram->nranks / diagram->nhosts;
        int first = diagram->host_first ? diagram->host_first[host] : host * even;
        int locals = diagram->host_first ? diagram->host_first[host + 1] - first : even;
        double x0 = lane(diagram, first) - diagram->column / 2;
        (void)snprintf(text, sizeof(text), "host %d", host);
        put_text(diagram, x0 + diagram->column * locals / 2, TOP - 8, 12,
                 "text-anchor=\"middle\" fill=\"#374151\"", text);
        if (host == 0) continue;
        (void)fprintf(diagram->out,
                      "<path d=\"M%.1f %dV%.1f\" fill=\"none\" stroke=\"#9ca3af\" "
                      "stroke-width=\"1\" stroke-dasharray=\"4 4\"/>\n",
                      x0, (int)TOP - 18, end);
    }
}

static void put_ranks(const struct diagram *diagram)
{
    char text[32];
    for (int r = 0; r < diagram->nranks; r++) {
        double x = lane(diagram, r);
        (void)fprintf(diagram->out,
                      "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"4\" "
                      "fill=\"#1f2937\"/>\n",
                      x - diagram->column / 2 + 8, (int)TOP, diagram->column - 16, (int)HEAD);
        (void)snprintf(text, sizeof(text), "rank %d", r);
        put_text(diagram, x, TOP + 18, 12, "text-anchor=\"middle\" fill=\"#ffffff\"", text);
    }
    for (int step = 1; step <= diagram->nsteps; step++) {
        (void)snprintf(text, sizeof(text), "step %d", step);
        put_text(diagram, MARGIN, diagram->y[step] + 15, 12, "fill=\"#374151\"", text);
    }
}

static void put_arrows(const struct diagram *diagram)
{
    for (size_t k = 0, next; k < diagram->narrows; k = next) {
        const struct tt_flow_message *arrow = &diagram->arrows[k];
        for (next = k + 1; next < diagram->narrows; next++) {
            if (!joins(arrow, &diagram->arrows[next])) break;
        }
        double x0 = lane(diagram, arrow->from), x1 = lane(diagram, arrow->to);
        double y1 = diagram->y[arrow->step] - 3, y0 = diagram->y[arrow->step] - BAND + 4;
        int colour = arrow->chunk % COLOURS;
        (void)fprintf(diagram->out,
                      "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\" fill=\"none\" "
                      "stroke=\"%s\" stroke-width=\"%s\" marker-end=\"url(#tip%d)\"/>\n",
                      x0, y0, x0, y0 + 22, x1, y1 - 26, x1, y1, colours[colour],
                      next - k > 1 ? "2.4" : "1.4", colour);
    }
}

static void put_boxes(const struct diagram *diagram)
{
    char text[512], style[64];
    for (size_t k = 0, count; k < diagram->nlines; k += count) {
        const struct line *lines = &diagram->lines[k];
        double x = lane(diagram, lines->rank), y = diagram->y[lines->step];
        count = box_lines(diagram, k);
        (void)fprintf(diagram->out,
                      "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\" "
                      "fill=\"#f3f4f6\" stroke=\"#9ca3af\"/>\n",
                      x - diagram->column / 2 + 8, y, diagram->column - 16,
                      LINE * (double)count + 8);
        for (size_t j = 0; j < count; j++) {
            line_text(diagram, &lines[j], text, sizeof(text));
            (void)snprintf(style, sizeof(style), "text-anchor=\"middle\" fill=\"%s\"",
                           colours[lines[j].first % COLOURS]);
            put_text(diagram, x, y + 15 + LINE * (double)j, SIZE, style, text);
        }
    }
}

static const char *arrow_of(enum tt_algo algo)
{
    switch (algo) {
    case TT_ALGO_DIRECT:
    case TT_ALGO_NVLS: return "a read or a write of another rank's memory";
    case TT_ALGO_COLLNET_DIRECT:
    case TT_ALGO_COLLNET_CHAIN: return "a message, between hosts a part of the network's sum";
    default: return "a message";
    }
}

bool program_svg(const struct program_source *source, const struct tt_flow *flow, int chunk,
                 FILE *out)
{
    enum { MOST_RANKS = 64, MOST_STEPS = 512 };
    char title[192];
    bool even = source->program->nranks % source->nhosts == 0;
    struct diagram diagram = {.out = out,
                              .program = source->program,
                              .flow = flow,
                              .nranks = source->program->nranks,
                              .nsteps = flow->nsteps,
                              .nhosts = even || source->host_first ? source->nhosts : 1,
                              .host_first = source->host_first,
                              .arrow = arrow_of((enum tt_algo)source->program->algo),
                              .chunk = chunk};
    if (chunk < 0 && flow->nmessages > MOST_MESSAGES) diagram.chunk = 0;
    if (diagram.nranks > MOST_RANKS || diagram.nsteps > MOST_STEPS) {
        (void)fprintf(stderr, "tutti program show: pictures have at most %d ranks and %d steps\n",
                      (int)MOST_RANKS, (int)MOST_STEPS);
        return false;
    }
    program_title(source, title, sizeof(title));
    diagram.lines = tt_calloc(flow->nmessages + 1, sizeof(*diagram.lines));
    diagram.arrows = tt_calloc(flow->nmessages + 1, sizeof(*diagram.arrows));
    diagram.y = tt_calloc((size_t)diagram.nsteps + 2, sizeof(*diagram.y));
    bool ready = diagram.lines && diagram.arrows && diagram.y;
    if (ready) {
        collect(&diagram);
        layout(&diagram);
        put_head(&diagram, title);
        put_hosts(&diagram);
        put_ranks(&diagram);
        put_arrows(&diagram);
        put_boxes(&diagram);
        (void)fputs("</svg>\n", out);
    } else {
        (void)fprintf(stderr, "tutti program show: out of memory for a picture\n");
    }
    free(diagram.lines);
    free(diagram.arrows);
    free(diagram.y);
    return ready;
}
