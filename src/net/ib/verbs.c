/* Finds libibverbs and its functions. A machine without InfiniBand in its kernel is not asked, so
 * that the library and what it loads stay out of most processes. */
#include "net/ib/verbs.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

static void *open_library(void)
{
    const char *named = tt_param_str("NCCL_IBVERBS_LIB");
    const char *const names[] = {named, "libibverbs.so", "libibverbs.so.1"};
    void *library = NULL;
    if (!named && access("/sys/class/infiniband", F_OK)) {
        tt_info(TT_LOG_INIT | TT_LOG_NET, "NET/IB : No device found.");
        return NULL;
    }
    for (size_t i = 0; i < TT_LEN(names) && !library; i++) {
        if (names[i]) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (names[i] && !library)
            tt_info(TT_LOG_INIT | TT_LOG_NET, "NET/IB : %s: %s", names[i], dlerror());
    }
    return library;
}

bool tt_verbs_open(struct tt_verbs *verbs)
{
    const struct {
        const char *name;
        void *at; /* of the pointer */
        bool optional;
    } functions[] = {
        {"ibv_fork_init", &verbs->fork_init, true},
        {"ibv_get_device_list", &verbs->get_device_list, false},
        {"ibv_free_device_list", &verbs->free_device_list, false},
        {"ibv_get_device_name", &verbs->get_device_name, false},
        {"ibv_open_device", &verbs->open_device, false},
        {"ibv_close_device", &verbs->close_device, false},
        {"ibv_query_device", &verbs->query_device, false},
        {"ibv_query_port", &verbs->query_port, false},
        {"ibv_query_gid", &verbs->query_gid, false},
        {"ibv_alloc_pd", &verbs->alloc_pd, false},
        {"ibv_dealloc_pd", &verbs->dealloc_pd, false},
        {"ibv_reg_mr", &verbs->reg_mr, false},
        {"ibv_reg_mr_iova2", &verbs->reg_mr_iova2, true},
        {"ibv_dereg_mr", &verbs->dereg_mr, false},
        {"ibv_create_cq", &verbs->create_cq, false},
        {"ibv_destroy_cq", &verbs->destroy_cq, false},
        {"ibv_create_qp", &verbs->create_qp, false},
        {"ibv_modify_qp", &verbs->modify_qp, false},
        {"ibv_destroy_qp", &verbs->destroy_qp, false},
        {"ibv_get_async_event", &verbs->get_async_event, false},
        {"ibv_ack_async_event", &verbs->ack_async_event, false},
        {"ibv_event_type_str", &verbs->event_type_str, false},
        {"ibv_wc_status_str", &verbs->wc_status_str, false},
    };
    void *library = open_library();
    if (!library) return false;
    for (size_t i = 0; i < TT_LEN(functions); i++) {
        void *function = dlsym(library, functions[i].name);
        if (!function && !functions[i].optional) {
            tt_info(TT_LOG_INIT | TT_LOG_NET, "NET/IB : the verbs library has no %s",
                    functions[i].name);
            dlclose(library);
            return false;
        }
        memcpy(functions[i].at, &function, sizeof(function));
    }
    return true;
}
