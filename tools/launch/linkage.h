/* What a program was linked to, as far as that keeps it from using our libraries. */
#pragma once

#include <stdbool.h>

/* Look at a program (a path, or a name in PATH) and say on standard error what cannot be redirected
 * and how to link it instead: a runtime or libnccl that is inside of the program, a DT_RPATH
 * that finds other libraries before ours, and an MPI library that several ranks cannot start by:
 * Open MPI always, MPICH and its relatives without PMI. Says nothing about scripts, other machines'
 * programs and what it cannot read.
 * libraries   our folders, joined by ':'
 * has_pmi     the ranks get a PMI_FD
 * Returns the number of complaints. */
int linkage_check(const char *program, const char *libraries, int nranks, bool has_pmi);
