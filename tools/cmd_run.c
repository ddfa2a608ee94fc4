/* `tutti run`: start a program as several ranks. */
#include "launch/launch.h"
#include "tutti.h"

#include <getopt.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void help(FILE *out)
{
    fprintf(
        out,
        "usage: tutti run -n N [OPTIONS] PROGRAM [ARGUMENTS...]\n\n"
        "Starts N processes (ranks) of PROGRAM with our libraries in the library path. Each finds\n"
        "in its environment RANK, SIZE, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,\n"
        "MASTER_PORT and NCCL_COMM_ID (so ncclGetUniqueId gives every rank the same id). Programs\n"
        "of MPICH and its relatives start as ranks too (PMI 1 and 2, on this host); those of Open\n"
        "MPI need their mpirun.\n\n"
        "When a rank fails, the others are ended within two seconds; the exit status is that of\n"
        "the first that failed (128 + signal). When ranks have ended with status 0 and all others\n"
        "wait for them in an init, these are ended, with status 1. Ranks end with this command,\n"
        "also when it is killed. Warnings, and after 60 s without progress a report of who waits\n"
        "for whom, go to standard error (TUTTI_WARN=0: not; NCCL_DEBUG: as it says); what several\n"
        "ranks warn of in the same words is printed once. Options as mpirun's may begin with one\n"
        "dash.\n\n"
        "  -n, --ranks N       number of processes (default: the hosts' slots, else 1); also\n"
        "                      -np N\n"
        "  -x NAME[=VALUE]     a variable that the ranks on other hosts get too (NCCL_ and TUTTI_ "
        "always)\n"
        "  -H, --hosts LIST    host[:slots],...: fill the hosts in order, started with $TUTTI_RSH\n"
        "                      (default ssh) HOST sh; none if all are localhost\n"
        "      --hostfile F    the same from a file, one host a line: host, host:N or host "
        "slots=N\n"
        "      --master ADDR   address of the first host that the others can reach\n"
        "      --no-prefix     do not put \"[rank] \" before lines\n"
        "      --device D      host, cuda or auto (default): which device libnccl takes\n"
        "      --own-ids       without NCCL_COMM_ID: each ncclGetUniqueId makes a new id, which "
        "the\n"
        "                      program hands to the others (ids made by several ranks, "
        "ncclCommGrow)\n"
        "      --strict        TUTTI_STRICT=1: what a GPU would not forgive is an error (for CI)\n"
        "      --json          when all is over, one object on standard output: verdict (ok, "
        "failed,\n"
        "                      hang, interrupted, not started), status, ranks with status, signal "
        "and\n"
        "                      duration, who waited for whom, warnings, findings of TUTTI_CHECK. "
        "What\n"
        "                      ranks print goes to standard error\n"
        "  -h, --help          this text\n\n"
        "examples:\n"
        "  tutti run -n 4 ./allreduce\n"
        "  tutti run --json --strict -n 4 ./allreduce >result.json\n"
        "  NCCL_DEBUG=INFO tutti run --ranks 8 ./train --steps 10\n"
        "  tutti run -n 4 --hosts node1:2,node2:2 --master 10.0.0.1 ./allreduce\n");
}

/* host[:slots] */
static bool parse_host(char *word, struct launch_options *options)
{
    if (options->nhosts == LAUNCH_MAX_HOSTS) return false;
    struct launch_host *host = &options->hosts[options->nhosts++];
    long slots = 1;
    char *colon = strrchr(word, ':');
    if (colon) {
        *colon = 0;
        if (!tutti_parse_int(colon + 1, 1, 65536, &slots)) return false;
    }
    if (!*word || strlen(word) >= sizeof(host->name)) return false;
    snprintf(host->name, sizeof(host->name), "%s", word);
    host->slots = (int)slots;
    return true;
}

static bool parse_hosts(const char *text, struct launch_options *options)
{
    char copy[8192];
    snprintf(copy, sizeof(copy), "%s", text);
    char *save = NULL;
    for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        if (!parse_host(word, options)) return false;
    }
    return options->nhosts > 0;
}

/* One host a line: "host", "host:N" or "host slots=N", as Open MPI's and MPICH's files have it; its
 * other words (max_slots=) say nothing here. */
static bool parse_host_line(char *line, struct launch_options *options)
{
    static const char blanks[] = " \t\r\n", slots[] = "slots=";
    char *save = NULL;
    line[strcspn(line, "#")] = 0;
    char *word = strtok_r(line, blanks, &save);
    if (!word) return true;
    if (!parse_host(word, options)) return false;
    while ((word = strtok_r(NULL, blanks, &save)) != NULL) {
        long number = 0;
        if (strncmp(word, slots, sizeof(slots) - 1) != 0) continue;
        if (!tutti_parse_int(word + sizeof(slots) - 1, 1, 65536, &number)) return false;
        options->hosts[options->nhosts - 1].slots = (int)number;
    }
    return true;
}

/* -1, or 2: it was said why. */
static int read_hostfile(const char *path, struct launch_options *options)
{
    char line[1024], copy[sizeof(line)];
    int number = 0, status = -1;
    FILE *file = fopen(path, "re");
    if (!file) return tutti_usage_error("run", "--hostfile %s: %m", path);
    while (status < 0 && fgets(line, sizeof(line), file)) {
        number++;
        memcpy(copy, line, sizeof(copy));
        line[strcspn(line, "\n")] = 0;
        if (parse_host_line(copy, options)) continue;
        status = tutti_usage_error(
            "run", "--hostfile %s, line %d: '%s' is no host, host:N or host slots=N", path, number,
            line);
    }
    fclose(file);
    if (status < 0 && !options->nhosts)
        return tutti_usage_error("run", "--hostfile %s names no host", path);
    return status;
}

/* More ranks than the hosts have slots: they run, and may run slowly. */
static void warn_of_slots(const struct launch_options *options)
{
    int slots = 0;
    for (int h = 0; h < options->nhosts; h++)
        slots += options->hosts[h].slots;
    if (slots >= options->nranks || !options->nhosts) return;
    fprintf(stderr,
            "tutti run: %d ranks on %d slots of --hosts: the last host gets the other %d, too\n",
            options->nranks, slots, options->nranks - slots);
}

/* Hosts that are this machine by their names need no remote shell, unless one is asked for. */
static bool all_here(const struct launch_options *options)
{
    for (int h = 0; h < options->nhosts; h++) {
        const char *name = options->hosts[h].name;
        if (strcmp(name, "localhost") != 0 && strcmp(name, "127.0.0.1") != 0) return false;
    }
    return !getenv("TUTTI_RSH");
}

/* As many ranks as the hosts have slots; without hosts one. */
static int all_slots(const struct launch_options *options)
{
    int slots = 0;
    for (int h = 0; h < options->nhosts && slots < LAUNCH_MAX_RANKS; h++)
        slots += options->hosts[h].slots;
    return !slots ? 1 : slots < LAUNCH_MAX_RANKS ? slots : LAUNCH_MAX_RANKS;
}

/* -1, or 2 when the first host's name is a loopback address here, by which the other hosts would
 * do not find rank 0. */
static int look_at_master(const struct launch_options *options)
{
    const char *name = options->hosts[0].name, *other = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char text[64] = "";
    for (int h = 1; h < options->nhosts && !other; h++) {
        if (strcmp(options->hosts[h].name, name) != 0) other = options->hosts[h].name;
    }
    if (!other || getenv("NCCL_COMM_ID") || getaddrinfo(name, NULL, &hints, &found)) return -1;
    (void)getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof(text), NULL, 0,
                      NI_NUMERICHOST);
    freeaddrinfo(found);
    if (strncmp(text, "127.", 4) != 0 && strcmp(text, "::1") != 0) return -1;
    return tutti_usage_error("run",
                             "%s is %s here, a loopback address, at which %s does not find rank 0: "
                             "give its address in the network by --master",
                             name, text, other);
}

static bool known_device(const char *name)
{
    return !strcmp(name, "host") || !strcmp(name, "cuda") || !strcmp(name, "auto");
}

static const struct option long_options[] = {
    {"ranks", required_argument, NULL, 'n'},
    {"np", required_argument, NULL, 'n'},
    {"hosts", required_argument, NULL, 'H'},
    {"host", required_argument, NULL, 'H'},
    {"master", required_argument, NULL, 'M'},
    {"no-prefix", no_argument, NULL, 'P'},
    {"device", required_argument, NULL, 'D'},
    {"strict", no_argument, NULL, 'S'},
    {"own-ids", no_argument, NULL, 'I'},
    {"json", no_argument, NULL, 'J'},
    {"help", no_argument, NULL, 'h'},
    {"h", no_argument, NULL, 'h'},
    {"hostfile", required_argument, NULL, 'F'},
    {"machinefile", required_argument, NULL, 'F'},
    {NULL, 0, NULL, 0},
};

static bool parse_ranks(const char *text, struct launch_options *options)
{
    long number = 0;
    if (!tutti_parse_int(text, 1, LAUNCH_MAX_RANKS, &number)) return false;
    options->nranks = (int)number;
    return true;
}

/* NAME=VALUE is set here, where ranks of this machine inherit it. */
static bool parse_export(char *text, struct launch_options *options)
{
    char *equals = strchr(text, '=');
    if (options->nexports == LAUNCH_MAX_EXPORTS || text[0] == '=' ||
        text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789")] !=
            (equals ? '=' : 0))
        return false;
    if (equals) {
        *equals = 0;
        setenv(text, equals + 1, 1);
    }
    options->exports[options->nexports++] = text;
    return *text != 0;
}

static int bad_option(const char *option)
{
    struct tutti_words words = {""};
    char name[32];
    for (size_t k = 0; long_options[k].name; k++) {
        if (!long_options[k].name[1]) continue;
        snprintf(name, sizeof(name), "--%s", long_options[k].name);
        tutti_words_add(&words, name);
    }
    return tutti_unknown("run", "option", option, &words);
}

/* -1: go on; 2: the options do not go together. */
static int look_at_options(int argc, char **argv, struct launch_options *options)
{
    if (options->device && !known_device(options->device)) {
        return tutti_usage_error("run", "--device %s is not host, cuda or auto", options->device);
    }
    if (optind >= argc) return tutti_usage_error("run", "no program given");
    options->program = argv + optind;
    if (!options->nranks) options->nranks = all_slots(options);
    warn_of_slots(options);
    if (all_here(options)) options->nhosts = 0;
    if (!options->master && options->nhosts > 1 && !options->own_ids)
        return look_at_master(options);
    return -1;
}

/* -1: go on; otherwise the exit status. */
static int parse(int argc, char **argv, struct launch_options *options)
{
    int letter;
    optind = opterr = 0;
    while ((letter = getopt_long_only(argc, argv, "+:n:H:x:", long_options, NULL)) != -1) {
        switch (letter) {
        case 'n':
            if (parse_ranks(optarg, options)) break;
            return tutti_usage_error("run", "the number of ranks is from 1 to %d, not %s",
                                     LAUNCH_MAX_RANKS, optarg);
        case 'H':
            if (parse_hosts(optarg, options)) break;
            return tutti_usage_error("run", "--hosts %s is no list host[:slots],...", optarg);
        case 'F':
            if (read_hostfile(optarg, options) < 0) break;
            return 2;
        case 'x':
            if (parse_export(optarg, options)) break;
            return tutti_usage_error("run", "-x %s is no variable NAME or NAME=VALUE", optarg);
        case 'M': options->master = optarg; break;
        case 'P': options->prefix = false; break;
        case 'D': options->device = optarg; break;
        case 'I':
            options->own_ids = true;
            unsetenv("NCCL_COMM_ID");
            break;
        case 'J': options->json = true; break;
        case 'S': setenv("TUTTI_STRICT", "1", 1); break;
        case 'h': help(stdout); return 0;
        case ':': return tutti_usage_error("run", "%s needs a value", argv[optind - 1]);
        default: return bad_option(argv[optind - 1]);
        }
    }
    return look_at_options(argc, argv, options);
}

int cmd_run(int argc, char **argv)
{
    struct launch_options *options = calloc(1, sizeof(*options));
    if (!options) return 2;
    options->prefix = true;
    int status = parse(argc, argv, options);
    if (status < 0) {
        if (options->device) setenv("TUTTI_DEVICE", options->device, 1);
        status = launch_run(options);
    }
    free(options);
    return status;
}
