/* Configuration files, and the check of names in the environment. Private to base/. */
#pragma once

#include "base/param.h"

/* Put the pairs of the configuration files into the environment, without overriding; once. Logs
 * nothing, so the log may call it. */
void tt_param_files_read(void);

/* "file <path>" when the variable's value came from a file, else NULL. Valid for ever. */
const char *tt_param_file_of(const char *name);

/* Row of a variable, NULL when the table has none. */
const struct tt_param *tt_param_find(const char *name);

/* Tests only: files are read again at the next use. Values stay in the environment. */
void tt_param_files_forget(void);
