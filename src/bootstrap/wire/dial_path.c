/* Which of two addresses of a process to call. */
#include "bootstrap/wire/dial_path.h"

#include "base/log.h"
#include "base/system/clock.h"
#include "bootstrap/wire/conn.h"
#include "bootstrap/wire/service.h"

#define FIRST_NSEC 1000000000ull
enum { MOST_DOUBLED = 3 };

const union tt_addr *tt_dial_path_begin(struct tt_dial_path *path, const union tt_addr *addr,
                                        const union tt_addr *spare)
{
    bool has_spare = spare->sa.sa_family != AF_UNSPEC;
    uint32_t doubled = path->turns / 2 < MOST_DOUBLED ? path->turns / 2 : MOST_DOUBLED;
    if (!path->turns) path->over_spare = tt_service()->netif_cut;
    path->over_spare = path->over_spare && has_spare;
    path->until_nsec = tt_now_nsec() + (FIRST_NSEC << doubled);
    return path->over_spare ? spare : addr;
}

bool tt_dial_path_is_late(const struct tt_dial_path *path, const union tt_addr *spare,
                          const struct tt_conn *conn)
{
    return spare->sa.sa_family != AF_UNSPEC && conn && conn->state == TT_CONN_CONNECTING &&
           tt_now_nsec() >= path->until_nsec;
}

void tt_dial_path_turn(struct tt_dial_path *path, bool refused)
{
    if (refused && !path->over_spare) return;
    path->over_spare = !path->over_spare;
    path->turns++;
}

void tt_dial_path_end(const struct tt_dial_path *path, const char *whom, const union tt_addr *addr,
                      const union tt_addr *spare)
{
    struct tt_service *service = tt_service();
    char first[128], second[128];
    if (!path->over_spare || service->netif_cut) return;
    service->netif_cut = true;
    tt_warn("%s does not answer at %s; it and what else would go that way is called at %s: is an "
            "interface cut?",
            whom, tt_addr_text(addr, first, sizeof(first)),
            tt_addr_text(spare, second, sizeof(second)));
}
