/* Ask a SAT solver: a child that reads a formula from its standard input (DIMACS) and answers as in
 * the SAT competition: "s SATISFIABLE" and values, or "s UNSATISFIABLE". Only a whole answer
 * counts. */
#include "search.h"
#include "tutti.h"

#include "base/mem.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct known {
    const char *name;
    const char *arguments[3];
};

static const struct known solvers[] = {
    {"cadical", {"-q"}}, {"kissat", {"-q"}},         {"cryptominisat5", {"--verb=0"}},
    {"picosat", {NULL}}, {"z3", {"-dimacs", "-in"}},
};

double search_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool is_installed(const char *name)
{
    char path[4096];
    const char *folders = getenv("PATH");
    if (strchr(name, '/')) return access(name, X_OK) == 0;
    for (const char *at = folders ? folders : ""; *at;) {
        int length = (int)strcspn(at, ":");
        (void)snprintf(path, sizeof(path), "%.*s/%s", length, at, name);
        if (access(path, X_OK) == 0) return true;
        at += length + (at[length] == ':');
    }
    return false;
}

const char *search_solver_find(const char *wanted)
{
    if (wanted) return is_installed(wanted) ? wanted : NULL;
    for (size_t k = 0; k < TT_LEN(solvers); k++) {
        if (is_installed(solvers[k].name)) return solvers[k].name;
    }
    return NULL;
}

/* The formula in a file without a name; -1: said. */
static int formula_file(const struct search_formula *formula)
{
    int fd = memfd_create("formula", MFD_CLOEXEC);
    FILE *out = fd >= 0 ? fdopen(dup(fd), "w") : NULL;
    bool written = out && fprintf(out, "p cnf %d %d\n", formula->nvariables, formula->nclauses) > 0;
    for (size_t k = 0; written && k < formula->nwords; k++)
        written = fprintf(out, formula->words[k] ? "%d " : "%d\n", formula->words[k]) > 0;
    if (out && fclose(out)) written = false;
    if (written && lseek(fd, 0, SEEK_SET) == 0) return fd;
    (void)fprintf(stderr, "tutti program search: a formula cannot be written: %s\n",
                  strerror(errno));
    if (fd >= 0) close(fd);
    return -1;
}

static _Noreturn void become(const char *program, int in, int out, pid_t parent)
{
    const char *name = strrchr(program, '/') ? strrchr(program, '/') + 1 : program;
    char *words[4] = {NULL}; /* what they point to is not changed; execvp() has no const */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    memcpy((void *)words, (const void *)&program, sizeof(program));
    for (size_t k = 0; k < TT_LEN(solvers); k++) {
        const void *arguments = solvers[k].arguments;
        if (!strcmp(solvers[k].name, name))
            memcpy((void *)(words + 1), arguments, sizeof(solvers[k].arguments));
    }
    setpgid(0, 0); /* a script ends with what it started */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
        execvp(program, words);
    _exit(127);
}

static pid_t start(const char *program, const struct search_formula *formula, int *answers_out)
{
    int ends[2], in = formula_file(formula);
    if (in < 0) return -1;
    pid_t parent = getpid();
    pid_t child = pipe(ends) == 0 ? fork() : -1;
    if (child == 0) become(program, in, ends[1], parent);
    if (child < 0) {
        (void)fprintf(stderr, "tutti program search: %s: %s\n", program, strerror(errno));
    } else {
        close(ends[1]);
        *answers_out = ends[0];
    }
    close(in);
    return child;
}

static void progress(struct search_solver *solver)
{
    double passed = search_now() - solver->began_sec;
    if (passed < 2 || !solver->doing || !isatty(STDERR_FILENO)) return;
    (void)fprintf(stderr, "\r\033[K%s, %.0f s ...", solver->doing, passed);
    solver->reported = true;
}

/* Until there is something to read. False: the time is over, or a signal came. */
static bool await(struct search_solver *solver, int fd, double until)
{
    for (;;) {
        struct pollfd ready[2] = {{.fd = fd, .events = POLLIN},
                                  {.fd = solver->signal_fd, .events = POLLIN}};
        double left = until - search_now();
        if (left <= 0) return false;
        int count = poll(ready, 2, left < 0.5 ? (int)(left * 1000) + 1 : 500);
        progress(solver);
        if (count < 0 && errno != EINTR) return false;
        if (count > 0 && ready[1].revents) return false;
        if (count > 0 && ready[0].revents) return true;
    }
}

/* All that the child says; NULL: the time is over, or a signal came. The caller frees it. */
static char *listen_to(struct search_solver *solver, int fd, double until)
{
    size_t used = 0, capacity = 1 << 16;
    char *text = malloc(capacity);
    while (text && await(solver, fd, until)) {
        ssize_t got = read(fd, text + used, capacity - used - 1);
        if (got < 0) break;
        used += (size_t)got;
        text[used] = '\0';
        if (got == 0) return text;
        char *grown = capacity - used < 4096 ? realloc(text, 2 * capacity) : NULL;
        if (grown) text = grown;
        if (grown) capacity *= 2;
        if (capacity - used < 2) break;
    }
    free(text);
    return NULL;
}

/* The values of a line "1 -2 3 ..."; false: it says something else. */
static bool read_line(const char *line, int nvariables, char *values)
{
    for (const char *at = line; *at != '\n' && *at != '\0';) {
        char *end;
        long literal = strtol(at, &end, 10);
        if (end == at || literal > nvariables || literal < -nvariables) return false;
        values[labs(literal)] = literal > 0 ? 1 : 0;
        at = end + strspn(end, " ");
    }
    return true;
}

/* The values of all lines "v 1 -2 3 ... 0"; false: some are missing. */
static bool read_values(const char *text, int nvariables, char *values)
{
    enum { UNTOLD = 2 };
    memset(values, (char)UNTOLD, (size_t)nvariables + 1);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (line[0] == 'v' && line[1] == ' ' && !read_line(line + 2, nvariables, values))
            return false;
    }
    return !memchr(values + 1, UNTOLD, (size_t)nvariables);
}

static const char *answer_line(const char *text)
{
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        if (text[0] == 's' && text[1] == ' ') return text + 2;
    }
    return "";
}

static enum search_answer read_answer(const char *program, const char *text, int status,
                                      int nvariables, char **values_out)
{
    const char *answer = answer_line(text);
    bool ended = WIFEXITED(status) && WEXITSTATUS(status) != 127;
    if (ended && !strncmp(answer, "UNSATISFIABLE", 13)) return SEARCH_NONE;
    if (ended && !strncmp(answer, "SATISFIABLE", 11)) {
        char *values = calloc((size_t)nvariables + 1, 1);
        if (values && read_values(text, nvariables, values)) {
            *values_out = values;
            return SEARCH_FOUND;
        }
        free(values);
    }
    (void)fprintf(stderr, "tutti program search: %s gave no answer that can be read (%s %d)\n",
                  program, WIFEXITED(status) ? "exit status" : "signal",
                  WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return SEARCH_BROKEN;
}

enum search_answer search_solve(struct search_solver *solver, const struct search_formula *formula,
                                double limit_sec, char **values_out)
{
    int answers = -1, status = 0;
    if (formula->full) {
        solver->too_large = true;
        return SEARCH_OPEN;
    }
    pid_t child = start(solver->program, formula, &answers);
    if (child < 0) return SEARCH_BROKEN;
    char *text = listen_to(solver, answers, search_now() + limit_sec);
    setpgid(child, child); /* as it does itself, if it has come to that */
    if (!text) kill(-child, SIGKILL);
    close(answers);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    struct pollfd signal_ready = {.fd = solver->signal_fd, .events = POLLIN};
    enum search_answer answer = SEARCH_OPEN;
    if (poll(&signal_ready, 1, 0) > 0) {
        answer = SEARCH_STOPPED;
    } else if (text) {
        answer = read_answer(solver->program, text, status, formula->nvariables, values_out);
    }
    free(text);
    return answer;
}
