/* A small text file as memory. */
#pragma once

#include <stddef.h>

enum { TUNER_FILE_MOST = 4 << 20 };

/* The whole file, ended by a zero byte; free() it. NULL: *reason_out says why. */
char *tuner_file_read(const char *path, size_t *bytes_out, const char **reason_out);
