/* A thread per port in use, asleep until the adapter reports an event: what ends connections is
 * counted at the port, where they look; the rest is logged. */
#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "net/ib/device.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void take_event(struct ib_port *port, const struct ibv_async_event *event)
{
    const char *text = tt_ib()->verbs.event_type_str(event->event_type);
    _Atomic bool *broken;
    switch (event->event_type) {
    case IBV_EVENT_PORT_ERR:
        tt_warn("NET/IB: %s:%d: %s: the port is down; what runs over it fails unless it comes back "
                "soon",
                port->name, event->element.port_num, text);
        break;
    case IBV_EVENT_QP_FATAL: /* of one queue pair: what else runs over the adapter goes on */
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        tt_warn("NET/IB: %s: %s: the connection that it belongs to ends", port->name, text);
        /* the event keeps the queue pair, and what its context points to, from being destroyed
         * until it is acknowledged */
        broken = event->element.qp->qp_context;
        if (broken && tt_param_bool("NCCL_IB_RETURN_ASYNC_EVENTS"))
            atomic_store_explicit(broken, true, memory_order_release);
        break;
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_CQ_ERR:
        tt_warn("NET/IB: %s: %s: connections over it end", port->name, text);
        if (tt_param_bool("NCCL_IB_RETURN_ASYNC_EVENTS")) tt_ib_adapter_failed(port->context);
        break;
    default: tt_info(TT_LOG_NET, "NET/IB : %s: %s", port->name, text);
    }
}

static void *watch(void *argument)
{
    struct ib_port *port = argument;
    struct pollfd fds[] = {{port->context->async_fd, POLLIN, 0}, {port->stop_fd, POLLIN, 0}};
    while (!fds[1].revents) {
        struct ibv_async_event event;
        if (poll(fds, 2, -1) < 0 || !fds[0].revents) continue;
        if (fds[0].revents & (POLLERR | POLLNVAL)) break;
        if (tt_ib()->verbs.get_async_event(port->context, &event)) continue;
        take_event(port, &event);
        tt_ib()->verbs.ack_async_event(&event);
    }
    return NULL;
}

/* Signals are for the user's threads. */
ncclResult_t tt_ib_watch_start(struct ib_port *port)
{
    sigset_t all, before;
    int flags = fcntl(port->context->async_fd, F_GETFL);
    fcntl(port->context->async_fd, F_SETFL, flags | O_NONBLOCK); /* ports share the descriptor */
    port->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (port->stop_fd < 0) return tt_fail(ncclSystemError, "NET/IB: eventfd: %m");
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&port->watcher, NULL, watch, port);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error) return ncclSuccess;
    close(port->stop_fd);
    port->stop_fd = -1;
    return tt_fail(ncclSystemError, "NET/IB: no thread for the events of %s", port->name);
}

void tt_ib_watch_stop(struct ib_port *port)
{
    uint64_t one = 1;
    if (port->stop_fd < 0) return;
    if (write(port->stop_fd, &one, sizeof(one)) == sizeof(one)) pthread_join(port->watcher, NULL);
    close(port->stop_fd);
    port->stop_fd = -1;
}
