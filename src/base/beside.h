/* Whether another process of the same job says what is wrong with the environment that both have.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Hash of the NCCL_ and TUTTI_ variables of an environment, without those that `tutti run` sets
 * differently for each rank. environment: NAME=VALUE texts, NULL-terminated; NULL: empty */
uint64_t tt_settings_sum(char *const *environment);

/* True in a rank that is not the first one of its host, where that one was started with the same
 * settings: by `tutti run`, which says so, or by a launcher that is the parent of both, while that
 * one runs. May look through /proc: not for paths that are taken often. Any thread. */
bool tt_settings_are_reported(void);
