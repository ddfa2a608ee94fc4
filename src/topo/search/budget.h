/* Remaining bandwidth of links and NICs while channels are placed. Private to the room. */
#pragma once

#include "trial.h"

/* Set the budgets of all links and NICs to their bandwidth. */
void tt_search_budgets(struct tt_topo_system *system);
/* Subtract `share` times the trial's speed from the path's budgets (negative: add it). False: the
 * path is not allowed or its budget too small; nothing is changed then. */
bool tt_budget_take(struct tt_trial *trial, struct tt_topo_node *from, struct tt_topo_node *to,
                    float share);
/* Subtract bw from the path's budgets without a check, for a graph that is known to fit. */
void tt_budget_charge(const struct tt_topo_node *from, const struct tt_topo_node *to, float bw);
