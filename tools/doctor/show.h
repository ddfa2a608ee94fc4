/* A job's answer as text. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Print what a DOCTOR answer says; true when a rank stands still. */
bool doctor_show(const json_t *job);
/* The same question, without a word. */
bool doctor_is_stuck(const json_t *job);
