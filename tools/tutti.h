/* What the subcommands of `tutti` share: the command table's row and small helpers on options. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct tutti_command {
    const char *name;
    const char *summary;               /* one line for `tutti help` */
    int (*run)(int argc, char **argv); /* exit status: 0 done, 1 the answer is no, 2 usage */
    bool parts;                        /* it has commands of its own */
};

int cmd_run(int argc, char **argv);
int cmd_perf(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_plugin(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_ras(int argc, char **argv);
int cmd_env(int argc, char **argv);
int cmd_topo(int argc, char **argv);
int cmd_program(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_version(int argc, char **argv);

/* Folder of this program. False when it cannot be found out. */
bool tutti_folder(char *folder, size_t folder_bytes);

/* The folder of an installation that is laid out as NVIDIA's are: include/, lib/, lib64/, bin/.
 * From the place of this program; false in a build tree. */
bool tutti_home(char *path, size_t path_bytes);

/* Where our libraries lie: "<home>/lib", or the build tree's folders joined by ':'.
 * False when no libnccl.so.2 is found there (said on stderr). */
bool tutti_library_path(char *path, size_t path_bytes);

/* One word for sh, in single quotes. */
void tutti_print_quoted(FILE *out, const char *text);

/* "tutti <command>: <text>" on stderr; returns 2 so that `return usage_error(...)` reads well. */
int tutti_usage_error(const char *command, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Words that a command knows, to name the nearest one to a word that it does not know. */
struct tutti_words {
    char text[512]; /* "ONE,TWO"; what has no room is not suggested */
};
void tutti_words_add(struct tutti_words *words, const char *word);
/* "tutti <command>: no <what> '<word>'; did you mean ONE? `tutti <command> --help` shows the
 * usage". Returns 2. */
int tutti_unknown(const char *command, const char *what, const char *word,
                  const struct tutti_words *words);

/* Let the library run the program in that file (TUTTI_PROGRAM_DIR) in every communicator of nranks
 * ranks. *operation is what it is for. Returns 0, or 2 after a complaint: the file is refused, or
 * for another number of ranks or another operation than argv names. */
int perf_program_use(const char *path, int nranks, int argc, char **argv, const char **operation);
struct tt_program;
/* What `tutti perf` calls the operation of a program. */
const char *perf_program_operation(const struct tt_program *program);

/* Whole decimal number in [low, high]; false otherwise. */
bool tutti_parse_int(const char *text, long low, long high, long *value_out);
