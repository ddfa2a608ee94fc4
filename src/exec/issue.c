/* The issue lock while another thread has it: apart from issue.h, so that taking a free one needs
 * no stack. */
#include "exec/issue.h"

#include "base/wait.h"

void tt_issue_await(struct tt_issue_queue *queue)
{
    uint32_t spins = 0;
    do {
        while (atomic_load_explicit(&queue->issuing, memory_order_relaxed))
            tt_wait_relax(&spins, true);
    } while (atomic_exchange_explicit(&queue->issuing, 1, memory_order_acquire));
}
