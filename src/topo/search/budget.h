/* Bandwidth that links and NICs have left while channels are placed. Private to the room. */
#pragma once

#include "trial.h"

/* Give all links and NICs their whole bandwidth. */
void tt_search_budgets(struct tt_topo_system *system);
/* Take `share` times the trial's speed on the path, or give it back when negative. False: the path
 * is not allowed or has not enough left; nothing was taken then. */
bool tt_budget_take(struct tt_trial *trial, struct tt_topo_node *from, struct tt_topo_node *to,
                    float share);
/* Take bw on the path between them, whatever is left: of a graph that was found to fit. */
void tt_budget_charge(const struct tt_topo_node *from, const struct tt_topo_node *to, float bw);
