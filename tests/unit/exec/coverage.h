/* Which features of the form the programs of a run used. */
#pragma once

#include "program/program.h"

/* Count what the program uses, each feature once. */
void coverage_count(const struct tt_program *program);
void coverage_print(void);
/* The first feature that no program used; NULL: all were. */
const char *coverage_missing(void);
