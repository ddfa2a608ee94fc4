/* What a program was linked to, as far as that keeps it from using our libraries. */
#pragma once

/* Look at a program (a path, or a name in PATH) and say on standard error what cannot be redirected
 * and how to link it instead: a runtime or libnccl that is inside of the program, a DT_RPATH
 * that finds other libraries before ours, and an MPI library when several ranks are started: it
 * knows only its own launcher. Says nothing about scripts, other machines' programs and
 * what it cannot read. `libraries`: our folders, joined by ':'. Returns the number of complaints.
 */
int linkage_check(const char *program, const char *libraries, int nranks);
