/* Whether another process of the same job reports what is wrong with the environment of both.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Hash of the NCCL_ and TUTTI_ variables of an environment, without those that `tutti run` sets
 * differently for each rank. environment: NAME=VALUE texts, NULL-terminated; NULL: empty */
uint64_t tt_settings_sum(char *const *environment);

/* True in a rank that is not the first one of its host, when the first one has the same settings:
 * `tutti run` passes their hash on; under another launcher, the parent of both, the environment of
 * the first rank is read while it runs. May read /proc, so not for paths that run often. Any
 * thread. */
bool tt_settings_are_reported(void);
