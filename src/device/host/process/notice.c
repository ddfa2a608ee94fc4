/* Messages to the program, once each: on the log, or on stderr where there is no log. */
#include "state.h"

#include "base/log.h"
#include "base/param.h"
#include "device/host/host_face.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void tuttiHostWarn(const char *fmt, ...)
{
    char line[512];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(line, sizeof(line) - 1, fmt, args);
    va_end(args);
    if (tt_log_on(TT_LOG_WARN, TT_LOG_ALL)) {
        tt_warn("%s", line);
        return;
    }
    if (len > (int)sizeof(line) - 2) len = (int)sizeof(line) - 2;
    line[len] = '\n';
    if (write(STDERR_FILENO, line, (size_t)len + 1) < 0) return; /* standard error is closed */
}

static bool is_news(const char *name)
{
    bool news = true;
    pthread_mutex_lock(&tt_host.notices.lock);
    for (int i = 0; news && i < tt_host.notices.count; i++) {
        news = strcmp(tt_host.notices.names[i], name) != 0;
    }
    if (news && tt_host.notices.count < TT_HOST_MAX_NOTICES)
        tt_host.notices.names[tt_host.notices.count++] = name;
    pthread_mutex_unlock(&tt_host.notices.lock);
    return news;
}

bool tuttiHostForbidsCalls(void)
{
    return tt_host_thread.in_host_fn && tt_param_bool("TUTTI_STRICT");
}

bool tt_host_refuses_here(void)
{
    if (!tuttiHostForbidsCalls()) return false;
    if (is_news("host function")) {
        tuttiHostWarn("TUTTI_STRICT: a host function (cudaLaunchHostFunc, cudaStreamAddCallback) "
                      "calls CUDA, which forbids that: error 800");
        tuttiHostFail("a host function called CUDA (TUTTI_STRICT)");
    }
    return true;
}

int tuttiHostUnsupported(const char *name)
{
    if (!is_news(name)) return TT_HOST_NOT_SUPPORTED;
    tuttiHostWarn("tutti: %s is not supported on the host device (error 801; "
                  "docs/hostcuda.md lists what is)",
                  name);
    return TT_HOST_NOT_SUPPORTED;
}
