/* `tutti topo report`: a page of HTML for each machine, which needs nothing but itself: the
 * picture, the tree, who reaches whom how, channels and what would be faster. Every text of a file
 * is escaped. */
#include "explain/explain.h"
#include "picture/picture.h"
#include "tutti.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1f2937;--soft:#4b5563;--page:#ffffff;--card:#f8fafc;"
    "--line:#d1d5db}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e5e7eb;--soft:#9ca3af;--page:#141414;"
    "--card:#1f2937;--line:#374151}.picture svg{filter:invert(0.92) hue-rotate(180deg)}}\n"
    "body{font:15px/1.5 system-ui,'DejaVu Sans',sans-serif;color:var(--ink);background:var(--page);"
    "max-width:1180px;margin:2rem auto;padding:0 1rem}\n"
    "h1{font-size:1.6rem;margin-bottom:.2rem}h2{margin-top:2.2rem;border-bottom:1px solid "
    "var(--line)}h3{margin-bottom:.3rem}\n"
    "nav a{margin-right:1rem}a{color:inherit}.soft{color:var(--soft)}\n"
    ".picture,.wide{overflow-x:auto}.picture "
    "svg{width:100%;min-width:880px;height:auto;display:block}.picture.long "
    "svg{width:auto;min-width:100%}\n"
    "pre,.advice{background:var(--card);border:1px solid var(--line);border-radius:8px;"
    "padding:.8rem 1rem;overflow-x:auto}\n"
    ".advice{padding-left:2rem}.advice li{margin:.4rem 0}\n"
    ".wide::-webkit-scrollbar,.picture::-webkit-scrollbar,pre::-webkit-scrollbar{height:12px}"
    ".wide::-webkit-scrollbar-thumb,.picture::-webkit-scrollbar-thumb,"
    "pre::-webkit-scrollbar-thumb{background:var(--soft);border-radius:6px}\n"
    ".wide{background:linear-gradient(to left,var(--page) 50%,transparent) right/60px 100% "
    "no-repeat local,linear-gradient(to left,var(--soft),transparent) right/24px 100% no-repeat}\n"
    "table{border-collapse:separate;border-spacing:2px;font-size:12px}\n"
    "td,th{padding:.15rem .25rem;border-radius:4px;white-space:nowrap;text-align:center;"
    "font-weight:normal}td{color:#1f2937}tr>th:first-child{position:sticky;left:0;"
    "background:var(--page)}\n"
    "td:empty{background:none}\n";

static void put_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&': (void)fputs("&amp;", out); break;
        case '<': (void)fputs("&lt;", out); break;
        case '>': (void)fputs("&gt;", out); break;
        case '"': (void)fputs("&quot;", out); break;
        default: (void)fputc(*text, out); break;
        }
    }
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* ---- parts of a page ---- */

/* folded: one of several equal hosts stands for all. */
static void put_tree(FILE *out, const struct box *box, bool folded)
{
    struct box one = {0};
    char *text = NULL;
    size_t bytes = 0;
    FILE *tree = open_memstream(&text, &bytes);
    if (!tree) return;
    bool alone = folded && box_init_host(&one, box->machine, 0);
    topo_show_tree(alone ? &one : box, tree);
    box_fini(&one);
    bool whole = fclose(tree) == 0;
    (void)fputs("<h2 id=\"tree\">Parts</h2>\n", out);
    if (alone) {
        (void)fprintf(out, "<p class=\"soft\">Of host 0. Hosts 1 to %d are alike.</p>\n",
                      box_hosts(box) - 1);
    }
    (void)fputs("<pre>", out);
    if (whole) put_text(out, text);
    (void)fputs("</pre>\n", out);
    free(text);
}

static void put_cell(FILE *out, const struct box *box, const char *matrix, int from, int to)
{
    const char *type = box_path_type(box, matrix, from, to);
    (void)fprintf(out, "<td style=\"background:%s\" title=\"%s\">%s %.4g</td>",
                  picture_path_fill(path_type_of(type)), path_type_meaning(path_type_of(type)),
                  type, box_path_bw(box, matrix, from, to));
}

/* From a host's first `gpus` GPUs to devices from `first` on, those of other hosts: each kind of
 * path once. */
static void put_far(FILE *out, const struct box *box, const char *list, int gpus, int first)
{
    bool net = strcmp(list, "nets") == 0;
    const char *matrix = net ? "gpu_net" : "gpu_gpu";
    struct text seen = {0};
    for (int g = 0; g < gpus; g++) {
        for (int to = first; to < box_count(box, list); to++) {
            char path[64];
            if (path_type_of(box_path_type(box, matrix, g, to)) == TT_PATH_DIS) continue;
            (void)snprintf(path, sizeof(path), "%s %.4g GB/s", box_path_type(box, matrix, g, to),
                           box_path_bw(box, matrix, g, to));
            if (strstr(text_get(&seen), path)) continue;
            text_add(&seen, "%s%s", seen.bytes ? ", " : "", path);
        }
    }
    if (seen.bytes)
        (void)fprintf(out, "<p>To %s of other hosts: %s.</p>\n", net ? "ports" : "GPUs", seen.text);
    text_free(&seen);
}

static void put_matrix(FILE *out, const struct box *box, bool folded)
{
    int hosts = folded ? box_hosts(box) : 1; /* alike, and host 0 comes first */
    int gpus = box_count(box, "gpus") / hosts;
    int nets = box_count(box, "nets") / hosts;
    (void)fputs(
        "<h2 id=\"paths\">Paths</h2>\n<p class=\"soft\">Type of the path and GB/s in one "
        "direction, from the GPU of the row.</p>\n<div class=\"wide\"><table>\n<tr><th></th>",
        out);
    for (int g = 0; g < gpus; g++)
        (void)fprintf(out, "<th>GPU %d</th>", g);
    for (int n = 0; n < nets; n++) {
        char name[BOX_NAME_BYTES];
        box_net_name(box, n, name);
        (void)fputs("<th>", out);
        put_text(out, name);
        (void)fputs("</th>", out);
    }
    for (int g = 0; g < gpus; g++) {
        (void)fprintf(out, "</tr>\n<tr><th>GPU %d</th>", g);
        for (int to = 0; to < gpus; to++) {
            if (to == g) (void)fputs("<td></td>", out);
            if (to != g) put_cell(out, box, "gpu_gpu", g, to);
        }
        for (int n = 0; n < nets; n++)
            put_cell(out, box, "gpu_net", g, n);
    }
    (void)fputs("</tr>\n</table></div>\n", out);
    if (!folded) return;
    put_far(out, box, "gpus", gpus, gpus);
    put_far(out, box, "nets", gpus, nets);
}

/* Findings of a kind, or all but those of `less`; both NULL: all. */
static void put_findings(FILE *out, const json_t *findings, const char *kind, const char *less)
{
    for (size_t k = 0; k < json_array_size(findings); k++) {
        const json_t *row = json_array_get(findings, k);
        const char *of = json_string_value(json_object_get(row, "kind"));
        const char *text = json_string_value(json_object_get(row, "text"));
        if ((kind && strcmp(of, kind) != 0) || (less && strcmp(of, less) == 0)) continue;
        (void)fputs(strcmp(of, "title") == 0 ? "<li class=\"soft\">" : "<li>", out);
        put_text(out, text);
        (void)fputs("</li>\n", out);
    }
}

enum { LONG_DEVICES = 24 }; /* side by side: shrunk to a page, their words would be too small */

static void begin_picture(FILE *out, const struct box *box)
{
    bool is_long = box_count(box, "gpus") + box_count(box, "nets") > LONG_DEVICES;
    (void)fprintf(out, "<div class=\"picture%s\">\n", is_long ? " long" : "");
}

/* In a communicator of so many machines: the picture of the channels, why, what would help. */
static bool put_scenario(FILE *out, const struct tt_topo_file *file, const struct box *box,
                         const struct topo_options *options, const char *path, int nodes)
{
    struct topo_scenario scenario = {0};
    const char *name = last_part(topo_name(path));
    bool done = topo_scenario_make(file, &options->look, nodes, &scenario);
    json_t *findings = done ? topo_findings(file, box, &options->look, name, &scenario) : NULL;
    done = done && findings;
    if (done) {
        (void)fprintf(out, "<h2 id=\"nodes-%d\">Channels, %d machine%s</h2>\n", nodes, nodes,
                      nodes == 1 ? " alone" : "s");
        (void)fputs("<h3>What would be faster</h3>\n<ul class=\"advice\">\n", out);
        put_findings(out, findings, "advice", NULL);
        (void)fputs("</ul>\n", out);
        begin_picture(out, box);
        done = topo_channels_svg(box->machine, name, &options->look, &scenario, out);
        (void)fputs("</div>\n<details><summary>Why channels run so</summary>\n<ul>\n", out);
        put_findings(out, findings, NULL, "advice");
        (void)fputs("</ul></details>\n", out);
    }
    json_decref(findings);
    topo_scenario_free(&scenario);
    return done;
}

static void put_title(FILE *out, const struct topo_options *options, const char *name)
{
    const int hosts = options->look.hosts, last = options->ncounts - 1;
    (void)fputs("Topology of ", out);
    if (hosts > 1) (void)fprintf(out, "%d hosts like ", hosts);
    put_text(out, name);
    if (hosts > 1) (void)fputs(" that are one node", out);
    for (int k = 0; k <= last; k++) {
        const char *between = k == 0 ? "; channels of " : k < last ? ", " : " and ";
        (void)fprintf(out, "%s%d", between, options->nodes[k]);
    }
    if (last >= 0) (void)fputs(options->nodes[last] == 1 ? " node" : " nodes", out);
}

static void put_head(FILE *out, const struct box *box, const struct topo_options *options,
                     const char *path)
{
    const char *name = last_part(topo_name(path));
    char facts[256];
    picture_facts(box, facts, sizeof(facts));
    (void)fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
                out);
    put_title(out, options, name);
    (void)fprintf(out, "</title>\n<style>\n%s</style></head>\n<body>\n<h1>", style);
    put_title(out, options, name);
    (void)fputs("</h1>\n<p>", out);
    put_text(out, facts);
    (void)fputs("</p>\n<nav><a href=\"#machine\">Machine</a><a href=\"#tree\">Parts</a><a "
                "href=\"#paths\">Paths</a>",
                out);
    for (int k = 0; k < options->ncounts; k++) {
        (void)fprintf(out, "<a href=\"#nodes-%d\">Channels, %d node%s</a>", options->nodes[k],
                      options->nodes[k], options->nodes[k] == 1 ? "" : "s");
    }
    (void)fputs("</nav>\n", out);
}

static bool put_page(FILE *out, const struct topo_options *options, const char *path)
{
    struct tt_topo_file *file = topo_open(options, path);
    json_t *machine = file ? topo_system(file, &options->look) : NULL;
    struct box box = {0};
    bool done = machine && box_init(&box, machine);
    if (done) {
        put_head(out, &box, options, path);
        (void)fputs("<h2 id=\"machine\">Machine</h2>\n", out);
        begin_picture(out, &box);
        done = topo_show_svg(&box, last_part(topo_name(path)), out);
        (void)fputs("</div>\n", out);
        bool folded = topo_is_rack(&box);
        put_tree(out, &box, folded);
        put_matrix(out, &box, folded);
    }
    for (int k = 0; done && k < options->ncounts; k++)
        done = put_scenario(out, file, &box, options, path, options->nodes[k]);
    (void)fprintf(out,
                  "<p class=\"soft\">Made by tutti topo report, Tutti %s.</p>\n</body></html>\n",
                  TUTTI_VERSION);
    box_fini(&box);
    json_decref(machine);
    tt_topo_file_free(file);
    return done;
}

/* ---- files ---- */

/* --output page.html names the page itself, unless there is a folder of that name. */
static bool names_page(const char *output)
{
    struct stat found;
    size_t length = output ? strlen(output) : 0;
    return length > 5 && !strcmp(output + length - 5, ".html") &&
           (stat(output, &found) || !S_ISDIR(found.st_mode));
}

/* What sets a page apart from that of the file alone: "-clique18-nodes1-16"; "" with the defaults.
 */
static void page_suffix(const struct topo_options *options, char *suffix, size_t bytes)
{
    size_t at = 0;
    suffix[0] = '\0';
    if (options->look.hosts > 1)
        at += (size_t)snprintf(suffix, bytes, "-clique%d", options->look.hosts);
    if (options->ncounts == 2 && options->nodes[0] == 1 && options->nodes[1] == 2) return;
    for (int k = 0; k < options->ncounts && at < bytes; k++) {
        at += (size_t)snprintf(suffix + at, bytes - at, "%s%d", k ? "-" : "-nodes",
                               options->nodes[k]);
    }
}

/* "pages/dgx.html" for "racks/dgx.xml". */
static bool page_path(const struct topo_options *options, const char *path, char page[PATH_MAX])
{
    if (names_page(options->output))
        return snprintf(page, PATH_MAX, "%s", options->output) < PATH_MAX;
    const char *name = path && strcmp(path, "-") != 0 ? last_part(path) : "machine";
    size_t length = strlen(name);
    if (length > 4 && !strcmp(name + length - 4, ".xml")) length -= 4;
    char suffix[160];
    page_suffix(options, suffix, sizeof(suffix));
    int bytes = snprintf(page, PATH_MAX, "%s%s%.*s%s.html", options->output ? options->output : "",
                         options->output ? "/" : "", (int)length, name, suffix);
    if (bytes < PATH_MAX) return true;
    (void)fprintf(stderr, "tutti topo: the name of the page for %s is too long\n", name);
    return false;
}

/* All of a page is made before anything is written. */
static bool make_page(const struct topo_options *options, const char *path)
{
    char page[PATH_MAX];
    char *text = NULL;
    size_t bytes = 0;
    bool to_stdout = options->output && strcmp(options->output, "-") == 0;
    FILE *memory = open_memstream(&text, &bytes);
    bool done = memory && page_path(options, path, page) && put_page(memory, options, path);
    if (memory && fclose(memory) != 0) done = false;
    if (done && to_stdout) {
        (void)fwrite(text, 1, bytes, stdout); /* main looks whether it arrived */
    } else if (done) {
        FILE *file = fopen(page, "we");
        done = file && fwrite(text, 1, bytes, file) == bytes;
        if (file && fclose(file) != 0) done = false;
        if (done) printf("%s\n", page);
        if (!done)
            (void)fprintf(stderr, "tutti topo: %s is not written: %s\n", page, strerror(errno));
    }
    free(text);
    return done;
}

/* Would two files have one page? */
static bool is_taken(const struct topo_options *options, int which)
{
    char page[PATH_MAX];
    char other[PATH_MAX];
    for (int k = 0; k < which; k++) {
        if (!page_path(options, options->paths[k], other) ||
            !page_path(options, options->paths[which], page) || strcmp(page, other) == 0)
            return true;
    }
    return false;
}

int topo_report(const struct topo_options *options)
{
    bool to_stdout = options->output && strcmp(options->output, "-") == 0;
    bool one_page = to_stdout || names_page(options->output);
    if (one_page && options->npaths > 1) {
        return tutti_usage_error("topo", "--output %s: one file only%s", options->output,
                                 to_stdout ? " for standard output" : " for one page");
    }
    for (int k = 0; k < options->npaths; k++) {
        if (is_taken(options, k)) {
            return tutti_usage_error("topo", "two files would have one page: %s",
                                     options->paths[k]);
        }
    }
    if (options->output && !one_page && mkdir(options->output, 0777) && errno != EEXIST) {
        (void)fprintf(stderr, "tutti topo: %s: %s\n", options->output, strerror(errno));
        return 1;
    }
    bool done = options->npaths > 0 || make_page(options, NULL);
    for (int k = 0; k < options->npaths; k++)
        done = make_page(options, options->paths[k]) && done;
    return done ? 0 : 1;
}
