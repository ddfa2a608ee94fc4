/* An environment plugin as strangers write them, of version ENV_VERSION: its answers are the lines
 * NAME=VALUE of the file ENVTEST_FILE; what is not there is unset, or with ENVTEST_PASS what the
 * environment says. Calls are noted in ENVTEST_NOTES. ENVTEST_FAULT plants one mistake. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void (*logger_t)(int level, unsigned long flags, const char *file, int line,
                         const char *fmt, ...);

enum { NAMES = 64, BYTES = 256 };

static struct {
    char name[BYTES], text[BYTES];
} pairs[NAMES];
static int npairs, lives, asked;
static logger_t logger;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int faulty(const char *fault)
{
    const char *planted = getenv("ENVTEST_FAULT");
    return planted && !strcmp(planted, fault);
}

static void note(const char *what, const char *more)
{
    const char *path = getenv("ENVTEST_NOTES");
    FILE *out = path ? fopen(path, "ae") : NULL;
    if (!out) return;
    fprintf(out, "%d %s %s\n", (int)getpid(), what, more);
    fclose(out);
}

static void read_pairs(void)
{
    char line[2 * BYTES];
    const char *path = getenv("ENVTEST_FILE");
    FILE *in = path ? fopen(path, "re") : NULL;
    npairs = 0;
    while (in && npairs < NAMES && fgets(line, sizeof(line), in)) {
        char *equals = strchr(line, '=');
        if (!equals) continue;
        *equals = '\0';
        snprintf(pairs[npairs].name, BYTES, "%.*s", BYTES - 1, line);
        snprintf(pairs[npairs++].text, BYTES, "%.*s", (int)strcspn(equals + 1, "\n"), equals + 1);
    }
    if (in) fclose(in);
}

/* A variable's value, asked for in the midst of init with a function of NCCL's. */
static void call_back(void)
{
    char text[64];
    long long value = -1;
    void *handle = NULL;
    int (*bind)(void **, const char *);
    int (*read)(void *, long long *);
    *(void **)&bind = dlsym(RTLD_DEFAULT, "ncclParamBind");
    *(void **)&read = dlsym(RTLD_DEFAULT, "ncclParamGetI64");
    if (!bind || !read || bind(&handle, "TUTTI_INIT_TIMEOUT") || read(handle, &value)) return;
    snprintf(text, sizeof(text), "TUTTI_INIT_TIMEOUT %lld", value);
    note("in-init", text);
}

static int begin(int major, int minor, int patch, const char *suffix)
{
    char version[64];
    snprintf(version, sizeof(version), "%d.%d.%d%s", major, minor, patch, suffix ? suffix : "?");
    note("init", version);
    if (faulty("init-fails")) return 3;
    if (faulty("init-code")) return 99;
    if (faulty("init-crashes")) abort();
    lives++;
    call_back();
    read_pairs();
    if (logger) logger(3, ~0UL, __FILE__, __LINE__, "ENVTEST: %d answers", npairs);
    return 0;
}

static int finish(void)
{
    note("finalize", "");
    lives--;
    if (faulty("finalize-crashes")) abort();
    while (faulty("finalize-hangs"))
        sleep(1);
    return faulty("finalize-fails") ? 2 : 0;
}

/* A value that the library does not understand, for the variable of the fault; else NULL. */
static const char *planted(const char *name)
{
    static const char *const values[][3] = {
        {"bad-value", "NCCL_BUFFSIZE", "plenty"},
        {"small-value", "NCCL_BUFFSIZE", "1"},
        {"bad-word", "NCCL_ALGO", "Rign"},
        {"bad-level", "NCCL_P2P_LEVEL", "NEAR"},
    };
    for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
        if (faulty(values[k][0]) && !strcmp(name, values[k][1])) return values[k][2];
    }
    return NULL;
}

static const char *answer(const char *name)
{
    static char moving[BYTES]; /* of the fault */
    const char *text = getenv("ENVTEST_PASS") ? getenv(name) : NULL;
    for (int k = 0; k < npairs; k++) {
        if (!strcmp(pairs[k].name, name)) text = pairs[k].text;
    }
    if (text && faulty("text-moves")) text = strncpy(moving, text, BYTES - 1);
    if (text && faulty("unsteady") && asked % 2) text = "another";
    if (!text && faulty("never-null")) text = "";
    if (planted(name)) text = planted(name);
    if (faulty("sets-env")) setenv("ENVTEST_ASKED", name, 1);
    if (faulty("long-name-crashes") && strlen(name) > 200) abort();
    if (faulty("empty-name-crashes") && !*name) abort();
    return text;
}

static const char *get(const char *name)
{
    note("getEnv", name);
    while (faulty("hangs"))
        sleep(1);
    if (faulty("crashes")) abort();
    if (faulty("slow")) usleep(150000);
    if (logger && faulty("logs")) logger(3, ~0UL, __FILE__, __LINE__, "ENVTEST: asked %s", name);
    if (faulty("not-threads") && pthread_mutex_trylock(&lock)) abort();
    if (faulty("not-threads")) usleep(20);
    __atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
    const char *text = answer(name);
    if (faulty("not-threads")) pthread_mutex_unlock(&lock);
    return text;
}

#if ENV_VERSION == 1
static int init(unsigned char major, unsigned char minor, unsigned char patch, const char *suffix)
{
    return begin(major, minor, patch, suffix);
}
#define INIT_TYPE int (*init)(unsigned char, unsigned char, unsigned char, const char *)
#define TABLE ncclEnvPlugin_v1
#else
static int init(unsigned char major, unsigned char minor, unsigned char patch, const char *suffix,
                logger_t log)
{
    logger = log;
    return begin(major, minor, patch, suffix);
}
#define INIT_TYPE int (*init)(unsigned char, unsigned char, unsigned char, const char *, logger_t)
#define TABLE ncclEnvPlugin_v2
#endif

#ifdef ENV_SYMBOL /* of an unknown version */
#undef TABLE
#define TABLE ENV_SYMBOL
#endif
struct table {
    const char *name;
    INIT_TYPE;
    int (*finalize)(void);
    const char *(*getEnv)(const char *name);
};
__attribute__((visibility("default"))) struct table TABLE = {"EnvTest", init, finish, get};

/* A table with a hole, before it is read. */
__attribute__((constructor)) static void leave_out(void)
{
    if (faulty("no-init")) TABLE.init = NULL;
    if (faulty("no-getenv")) TABLE.getEnv = NULL;
    if (faulty("no-finalize")) TABLE.finalize = NULL;
    if (faulty("no-name")) TABLE.name = NULL;
}
