/* The object is made at the end, from the ranks' ends and a list of sentences. Ranks' own output is
 * not in it: it goes to standard error, where it is as without --json. */
#include "report.h"

#include "launch.h"
#include "same.h"

#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SENTENCES_MAX = 256, FINDINGS_MAX = 256 };

struct sentence {
    struct launch_keys keys;
    char *text; /* owned; NULL: none */
    bool *by;   /* owned; ranks that said it */
    int blames; /* the rank that it names as the cause; -1: none */
    bool reports_hang;
};

/* A finding of TUTTI_CHECK as one rank wrote it. */
struct finding {
    int rank;
    char *sentence;  /* owned; NULL: memory was short */
    json_t *details; /* owned */
};

struct process {
    pid_t pid;  /* 0: not started */
    int host;   /* index into the hosts; -1: here */
    int status; /* as waitpid() gave it */
    bool ended, sent;
    bool in_finding; /* its last line was one of a finding, the last one of its own */
    long nfindings;  /* as its last line says; 0: no such line */
    int blames;      /* the rank that the first sentence of this one names; -1: none does */
    struct timespec begin, end;
};

struct launch_report {
    const struct launch_options *options; /* borrowed */
    struct process *processes;            /* owned */
    struct sentence sentences[SENTENCES_MAX];
    int nsentences, nmore;
    struct finding findings[FINDINGS_MAX];
    int nfindings;
    int first_failed; /* -1: none */
    int blamed;       /* by the first report that names a rank; -1: none does */
    bool interrupted;
    bool stands; /* its ranks wait for one that has ended: they are ended, and none has failed */
    time_t started;
    struct timespec begin;
};

struct launch_report *launch_report_create(const struct launch_options *options)
{
    struct launch_report *report = calloc(1, sizeof(*report));
    if (!report) return NULL;
    report->options = options;
    report->first_failed = report->blamed = -1;
    report->started = time(NULL);
    clock_gettime(CLOCK_MONOTONIC, &report->begin);
    report->processes = calloc((size_t)options->nranks, sizeof(*report->processes));
    for (int r = 0; report->processes && r < options->nranks; r++)
        report->processes[r].blames = -1;
    if (report->processes) return report;
    launch_report_destroy(report);
    return NULL;
}

void launch_report_destroy(struct launch_report *report)
{
    if (!report) return;
    for (int k = 0; k < report->nsentences; k++) {
        free(report->sentences[k].text);
        free(report->sentences[k].by);
    }
    for (int k = 0; k < report->nfindings; k++) {
        free(report->findings[k].sentence);
        json_decref(report->findings[k].details);
    }
    free(report->processes);
    free(report);
}

/* ---- what happens ---- */

void launch_report_start(struct launch_report *report, int rank, int host, pid_t pid)
{
    if (!report) return;
    struct process *process = &report->processes[rank];
    process->pid = pid;
    process->host = host;
    clock_gettime(CLOCK_MONOTONIC, &process->begin);
}

/* The watchdog's and the init's sentences of who waits for whom. */
static bool reports_hang(const char *text)
{
    static const char *const marks[] = {" waits: ",
                                        "no operation was finished for",
                                        "init waits since",
                                        "ranks wait for each other",
                                        "others wait for this rank",
                                        "did not come within",
                                        "was not complete within"};
    for (size_t k = 0; k < sizeof(marks) / sizeof(marks[0]); k++) {
        if (strstr(text, marks[k])) return true;
    }
    return false;
}

/* Whether "rank N" with these words behind it names the cause: at the beginning of a sentence, or
 * in one about several ranks (`several`: whose others are listed) as the only one that does so. */
static bool names_cause(char before, const char *words, bool several)
{
    static const char alone[] = " alone called ", ended[] = " ended the communicator after ";
    static const char *const verbs[] = {" on host ", ": ", " ended the communicator",
                                        " aborted the communicator", alone};
    bool named = false;
    bool begins = strchr(":;", before) || !strncmp(words, alone, sizeof(alone) - 1) ||
                  (several && !strncmp(words, ended, sizeof(ended) - 1));
    for (size_t k = 0; begins && k < sizeof(verbs) / sizeof(verbs[0]); k++)
        named |= !strncmp(words, verbs[k], strlen(verbs[k]));
    return named && strncmp(words, ": communicator ", 15) != 0; /* who speaks, of another one */
}

/* The rank that a rank's sentence says is the cause ("comm 0x1 rank 0: rank 1 on host a (pid 7) is
 * gone"): on this host the process with that pid, as numbers are a communicator's, else the number.
 * -1: none. */
static int blamed_by(const struct launch_report *report, const char *text)
{
    const bool several = report->options->nranks == 2 || strstr(text, "operations: ranks ");
    const char *at = text;
    while ((at = strstr(at, " rank ")) != NULL) {
        char *end = NULL;
        const long number = strtol(at + strlen(" rank "), &end, 10);
        const bool named = at > text && names_cause(at[-1], end, several);
        const char *pid = named ? strstr(end, "(pid ") : NULL;
        for (int r = 0; pid && r < report->options->nranks; r++) {
            const struct process *process = &report->processes[r]; /* of other hosts: a shell's */
            if (process->host < 0 && process->pid && process->pid == strtol(pid + 5, NULL, 10))
                return r;
        }
        if (named && number >= 0 && number < report->options->nranks) return (int)number;
        at = end;
    }
    return -1;
}

static struct sentence *find(struct launch_report *report, const struct launch_keys *keys)
{
    for (int k = 0; k < report->nsentences; k++) {
        if (launch_same_keys_match(&report->sentences[k].keys, keys)) return &report->sentences[k];
    }
    return NULL;
}

/* "tutti check: race: ..." begins a finding, indented lines are its details, "tutti check: 2
 * findings" counts them at the end. True: the line is one of these. */
static bool take_finding(struct launch_report *report, int rank, const char *line, size_t bytes)
{
    static const char mark[] = "tutti check: ", detail[] = "  ";
    struct process *process = &report->processes[rank];
    const bool marked = bytes >= sizeof(mark) && !memcmp(line, mark, sizeof(mark) - 1);
    const bool more = bytes > sizeof(detail) && !memcmp(line, detail, sizeof(detail) - 1);
    char *end = NULL;
    if (!marked) {
        for (int k = report->nfindings - 1; k >= 0 && more && process->in_finding; k--) {
            const struct finding *finding = &report->findings[k];
            if (finding->rank != rank) continue;
            json_array_append_new(finding->details, json_stringn(line + 2, bytes - 2));
            return true;
        }
        process->in_finding = false;
        return false;
    }
    const char *text = line + sizeof(mark) - 1;
    const size_t text_bytes = bytes - (sizeof(mark) - 1);
    const long count = strtol(text, &end, 10);
    process->in_finding = false;
    if (end > text) {
        process->nfindings = count;
    } else if (memcmp(text, "the exit status ", 16) != 0 && report->nfindings < FINDINGS_MAX) {
        report->findings[report->nfindings++] =
            (struct finding){rank, strndup(text, text_bytes), json_array()};
        process->in_finding = true;
    }
    return true;
}

static bool ended_itself(const struct process *process)
{
    return process->ended && !process->sent;
}

void launch_report_line(struct launch_report *report, int rank, const char *line, size_t bytes)
{
    struct launch_keys keys;
    size_t sentence_bytes = 0;
    const char *text = NULL;
    if (!report || take_finding(report, rank, line, bytes)) return;
    if (!report->interrupted) text = launch_same_keys(rank, line, bytes, &keys, &sentence_bytes);
    if (!text) return;
    struct sentence *sentence = find(report, &keys);
    if (!sentence && report->nsentences == SENTENCES_MAX) {
        report->nmore++;
        return;
    }
    if (!sentence) {
        sentence = &report->sentences[report->nsentences];
        sentence->keys = keys;
        sentence->text = strndup(text, sentence_bytes);
        sentence->by = calloc((size_t)report->options->nranks, sizeof(*sentence->by));
        report->nsentences++;
        sentence->reports_hang = sentence->text && reports_hang(sentence->text);
        sentence->blames = sentence->text ? blamed_by(report, sentence->text) : -1;
    }
    if (sentence->by) sentence->by[rank] = true;
    int blames = sentence->blames;
    if (blames >= 0 && report->first_failed >= 0 && !ended_itself(&report->processes[blames]))
        blames = -1; /* it is being ended because of the one that failed */
    if (report->processes[rank].blames < 0) report->processes[rank].blames = blames;
    if (report->blamed < 0) report->blamed = blames;
}

void launch_report_end(struct launch_report *report, int rank, int status, bool sent)
{
    if (!report) return;
    struct process *process = &report->processes[rank];
    process->ended = true;
    process->status = status;
    process->sent = sent;
    clock_gettime(CLOCK_MONOTONIC, &process->end);
}

void launch_report_blame(struct launch_report *report, int rank)
{
    if (!report || report->first_failed >= 0 || report->interrupted || report->stands) return;
    report->first_failed = rank;
}

/* A rank that failed because of another one is named by the others as well, and may be named
 * first: what it says itself leads further. */
int launch_report_blamed(const struct launch_report *report)
{
    int rank = report ? report->blamed : -1;
    for (int steps = 0; rank >= 0 && steps < report->options->nranks; steps++) {
        const int next = report->processes[rank].blames;
        if (next < 0 || next == rank) return rank;
        rank = next;
    }
    return report ? report->blamed : -1; /* they name each other */
}

void launch_report_hang(struct launch_report *report, const char *text, const bool *waits,
                        int ended)
{
    if (!report || report->nsentences == SENTENCES_MAX) return;
    struct sentence *sentence = &report->sentences[report->nsentences];
    *sentence = (struct sentence){.text = strdup(text), .reports_hang = true};
    sentence->by = calloc((size_t)report->options->nranks, sizeof(*sentence->by));
    report->nsentences++;
    report->blamed = ended;
    report->stands = true;
    for (int r = 0; sentence->by && r < report->options->nranks; r++)
        sentence->by[r] = waits[r];
}

void launch_report_interrupt(struct launch_report *report)
{
    if (report && report->first_failed < 0) report->interrupted = true;
}

/* ---- the object ---- */

/* Of a communicator, not of a setting. */
static bool is_of_job(const struct sentence *sentence)
{
    return sentence->text && strstr(sentence->text, "comm") && strstr(sentence->text, " 0x");
}

/* Where no sentence names a rank, the one that failed first and alone: had it ended a moment later,
 * others would have named it. */
static int cause_of(const struct launch_report *report)
{
    const int named = launch_report_blamed(report), failed = report->first_failed;
    if (named >= 0 || failed < 0) return named;
    for (int k = 0; k < report->nsentences; k++) {
        const struct sentence *sentence = &report->sentences[k];
        for (int r = 0; r < report->options->nranks && sentence->by; r++) {
            if (r != failed && sentence->by[r] && sentence->blames < 0 && is_of_job(sentence))
                return -1;
        }
    }
    return failed;
}

/* Milliseconds are as exact as it gets. */
static json_t *seconds(const struct timespec *begin, const struct timespec *end)
{
    long long nsec = (end->tv_sec - begin->tv_sec) * 1000000000ll + (end->tv_nsec - begin->tv_nsec);
    long long msec = nsec / 1000000;
    return json_real((double)msec / 1e3);
}

/* "SIGSEGV", of those without a name the number, null where none ended the rank. Of ranks on other
 * hosts the shell says 128 and the number. */
static json_t *signal_of(const struct process *process)
{
    const bool far = process->host >= 0 && WIFEXITED(process->status);
    int number = WIFSIGNALED(process->status) ? WTERMSIG(process->status) : 0;
    if (far && WEXITSTATUS(process->status) > 128) number = WEXITSTATUS(process->status) - 128;
    const char *name = number ? sigabbrev_np(number) : NULL;
    if (name) return json_sprintf("SIG%s", name);
    return number && !far ? json_integer(number) : json_null();
}

/* Bytes that are no UTF-8, as a program's name may have, are shown as '?'. */
static json_t *text_of(const char *text)
{
    json_t *value = json_string(text);
    char *copy = value ? NULL : strdup(text);
    for (char *c = copy; c && *c; c++) {
        if ((unsigned char)*c >= 0x80) *c = '?';
    }
    if (copy) value = json_string(copy);
    free(copy);
    return value;
}

static json_t *process_object(const struct launch_report *report, int rank, const char *here)
{
    const struct process *process = &report->processes[rank];
    const int status = process->status;
    json_t *object = json_object();
    json_object_set_new(object, "rank", json_integer(rank));
    json_object_set_new(
        object, "host",
        text_of(process->host < 0 ? here : report->options->hosts[process->host].name));
    json_object_set_new(object, "pid",
                        process->host < 0 ? json_integer(process->pid) : json_null());
    if (!process->ended) {
        json_object_set_new(object, "status", json_null());
        return object;
    }
    const bool signalled = WIFSIGNALED(status);
    json_object_set_new(object, "status",
                        json_integer(signalled ? 128 + WTERMSIG(status) : WEXITSTATUS(status)));
    json_object_set_new(object, "signal", signal_of(process));
    json_object_set_new(object, "ended_by_launcher", json_boolean(process->sent));
    json_object_set_new(object, "duration_s", seconds(&process->begin, &process->end));
    json_object_set_new(object, "findings", json_integer(process->nfindings));
    return object;
}

static json_t *processes_array(const struct launch_report *report)
{
    char here[256] = "localhost";
    json_t *array = json_array();
    (void)gethostname(here, sizeof(here) - 1);
    for (int r = 0; r < report->options->nranks; r++) {
        if (report->processes[r].pid) json_array_append_new(array, process_object(report, r, here));
    }
    return array;
}

static json_t *sentences_array(const struct launch_report *report, bool of_hang)
{
    json_t *array = json_array();
    for (int k = 0; k < report->nsentences; k++) {
        const struct sentence *sentence = &report->sentences[k];
        if (sentence->reports_hang != of_hang || !sentence->text || !sentence->by) continue;
        json_t *ranks = json_array();
        for (int r = 0; r < report->options->nranks; r++) {
            if (sentence->by[r]) json_array_append_new(ranks, json_integer(r));
        }
        json_array_append_new(
            array, json_pack("{s:o, s:o}", "ranks", ranks, "sentence", text_of(sentence->text)));
    }
    return array;
}

static json_t *findings_array(const struct launch_report *report)
{
    json_t *array = json_array();
    for (int k = 0; k < report->nfindings; k++) {
        const struct finding *finding = &report->findings[k];
        json_array_append_new(array, json_pack("{s:i, s:o, s:O}", "rank", finding->rank, "sentence",
                                               text_of(finding->sentence ? finding->sentence : ""),
                                               "details", finding->details));
    }
    return array;
}

/* In one word. A hang that was told of and then went on is none. */
static const char *verdict_of(const struct launch_report *report, int status, bool hung)
{
    bool started = false;
    for (int r = 0; r < report->options->nranks; r++)
        started |= report->processes[r].pid != 0;
    if (!started) return "not started";
    if (!status) return "ok";
    if (hung) return "hang";
    return report->interrupted ? "interrupted" : "failed";
}

static json_t *program_array(const struct launch_options *options)
{
    json_t *array = json_array();
    for (char *const *word = options->program; *word; word++)
        json_array_append_new(array, text_of(*word));
    return array;
}

void launch_report_write(const struct launch_report *report, int status, FILE *to)
{
    if (!report) return;
    char stamp[32];
    struct tm parts;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    strftime(stamp, sizeof(stamp), "%FT%TZ", gmtime_r(&report->started, &parts));
    json_t *hang = sentences_array(report, true);
    json_t *object = json_object();
    json_object_set_new(object, "tutti", json_string(TUTTI_VERSION));
    json_object_set_new(object, "program", program_array(report->options));
    json_object_set_new(object, "ranks", json_integer(report->options->nranks));
    json_object_set_new(object, "started", json_string(stamp));
    json_object_set_new(object, "duration_s", seconds(&report->begin, &now));
    json_object_set_new(object, "status", json_integer(status));
    json_object_set_new(object, "verdict",
                        json_string(verdict_of(report, status, json_array_size(hang) > 0)));
    json_object_set_new(object, "first_failed",
                        report->first_failed < 0 ? json_null()
                                                 : json_integer(report->first_failed));
    const int cause = status ? cause_of(report) : -1; /* a job that is well: it was late */
    json_object_set_new(object, "blamed", cause < 0 ? json_null() : json_integer(cause));
    json_object_set_new(object, "interrupted", json_boolean(report->interrupted));
    json_object_set_new(object, "processes", processes_array(report));
    json_object_set_new(object, "hang", hang);
    json_object_set_new(object, "warnings", sentences_array(report, false));
    json_object_set_new(object, "findings", findings_array(report));
    json_object_set_new(object, "left_out", json_integer(report->nmore));
    if (json_dumpf(object, to, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0) fputc('\n', to);
    fflush(to);
    json_decref(object);
}
