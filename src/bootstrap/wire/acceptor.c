/* What answers hellos of one key. */
#include "bootstrap/wire/acceptor.h"

#include "bootstrap/wire/conn.h"
#include "bootstrap/wire/service.h"

void tt_acceptor_open(struct tt_acceptor *acceptor)
{
    struct tt_service *service = tt_service();
    acceptor->next = service->acceptors;
    service->acceptors = acceptor;
    struct tt_conn *next;
    for (struct tt_conn *conn = service->conns; conn; conn = next) {
        next = conn->next;
        if (conn->state == TT_CONN_PARKED) tt_conn_unpark(conn);
    }
}

void tt_acceptor_close(struct tt_acceptor *acceptor)
{
    struct tt_service *service = tt_service();
    struct tt_acceptor **link = &service->acceptors;
    while (*link && *link != acceptor)
        link = &(*link)->next;
    if (!*link) return;
    *link = acceptor->next;
    struct tt_conn *next;
    for (struct tt_conn *conn = service->conns; conn; conn = next) {
        next = conn->next;
        if (conn->acceptor == acceptor && conn->state == TT_CONN_PROOF) tt_conn_close(conn);
    }
}
