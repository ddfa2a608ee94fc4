/* Predicted times of this host's programs. */
#pragma once

#include "tune.h"

/* A channel of a program that is spread over several carries at least so much. */
enum { TT_CHANNEL_BYTES = 65536 };

/* Microseconds of the operation with that algorithm and protocol; -1 when there is no such program
 * or the ranks cannot run it. Pure. */
double tt_model_plain_time(const struct tt_tune_env *env, const struct tt_tune_query *query,
                           enum tt_algo algo, enum tt_proto proto);
/* The same for the choice: algorithms that run only on request get 1024 times their time. */
double tt_model_time(const struct tt_tune_env *env, const struct tt_tune_query *query,
                     enum tt_algo algo, enum tt_proto proto);

/* Write the figures of this host's rings, trees and PAT into the constants. A hop inside the host
 * is a hop over PCI; bandwidths are those of a rank, equal for every class of device. */
void tt_model_constants(const struct tt_tune_env *env, ncclTunerConstants_v6_t *constants);

/* True when the order of a reduction changes its result: with floats, except for minimum and
 * maximum. Rings and trees reduce in an order that depends on chunk and channel. */
bool tt_tune_order_shows(const struct tt_tune_query *query);
/* Eight-bit floats are rounded at every hop of a ring: too coarse for long ones. */
bool tt_tune_too_coarse(const struct tt_tune_env *env, const struct tt_tune_query *query);
