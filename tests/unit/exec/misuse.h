/* What the verifier refuses for how a program is written, seen without the verifier: by the numbers
 * of one transfer, or by the ends of edges that a rank's threads use. */
#pragma once

#include "schedules.h"

enum misuse { MISUSE_NONE, MISUSE_SHOWN, MISUSE_MISSED };

/* NONE: the fault is about something else. */
enum misuse misuse_find(const struct schedules_set *set, const char *fault);
