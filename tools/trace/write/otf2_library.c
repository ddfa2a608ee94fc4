/* Functions by name. */
#include "otf2_library.h"

#include "base/mem.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct wanted {
    const char *name;
    size_t offset;
};
static const struct wanted wanted[] = {
    {"OTF2_Archive_Open", offsetof(struct otf2, open)},
    {"OTF2_Archive_Close", offsetof(struct otf2, close)},
    {"OTF2_Archive_SetCreator", offsetof(struct otf2, set_creator)},
    {"OTF2_Archive_SetFlushCallbacks", offsetof(struct otf2, set_flush)},
    {"OTF2_Archive_SetSerialCollectiveCallbacks", offsetof(struct otf2, set_serial)},
    {"OTF2_Archive_OpenEvtFiles", offsetof(struct otf2, open_events)},
    {"OTF2_Archive_CloseEvtFiles", offsetof(struct otf2, close_events)},
    {"OTF2_Archive_OpenDefFiles", offsetof(struct otf2, open_definitions)},
    {"OTF2_Archive_CloseDefFiles", offsetof(struct otf2, close_definitions)},
    {"OTF2_Archive_GetEvtWriter", offsetof(struct otf2, events_of)},
    {"OTF2_Archive_CloseEvtWriter", offsetof(struct otf2, close_events_of)},
    {"OTF2_Archive_GetDefWriter", offsetof(struct otf2, definitions_of)},
    {"OTF2_Archive_CloseDefWriter", offsetof(struct otf2, close_definitions_of)},
    {"OTF2_Archive_GetGlobalDefWriter", offsetof(struct otf2, global)},
    {"OTF2_Archive_CloseGlobalDefWriter", offsetof(struct otf2, close_global)},
    {"OTF2_Error_RegisterCallback", offsetof(struct otf2, on_error)},
    {"OTF2_Error_GetDescription", offsetof(struct otf2, describe)},
    {"OTF2_AttributeList_New", offsetof(struct otf2, facts_new)},
    {"OTF2_AttributeList_Delete", offsetof(struct otf2, facts_delete)},
    {"OTF2_AttributeList_AddUint64", offsetof(struct otf2, add_number)},
    {"OTF2_AttributeList_AddStringRef", offsetof(struct otf2, add_text)},
    {"OTF2_EvtWriter_Enter", offsetof(struct otf2, enter)},
    {"OTF2_EvtWriter_Leave", offsetof(struct otf2, leave)},
    {"OTF2_EvtWriter_NonBlockingCollectiveRequest", offsetof(struct otf2, collective_begins)},
    {"OTF2_EvtWriter_NonBlockingCollectiveComplete", offsetof(struct otf2, collective_ends)},
    {"OTF2_EvtWriter_MpiIsend", offsetof(struct otf2, send_begins)},
    {"OTF2_EvtWriter_MpiIsendComplete", offsetof(struct otf2, send_ends)},
    {"OTF2_EvtWriter_MpiIrecvRequest", offsetof(struct otf2, receive_begins)},
    {"OTF2_EvtWriter_MpiIrecv", offsetof(struct otf2, receive_ends)},
    {"OTF2_EvtWriter_ParameterString", offsetof(struct otf2, parameter)},
    {"OTF2_EvtWriter_GetNumberOfEvents", offsetof(struct otf2, count_events)},
    {"OTF2_GlobalDefWriter_WriteClockProperties", offsetof(struct otf2, clock)},
    {"OTF2_GlobalDefWriter_WriteString", offsetof(struct otf2, string)},
    {"OTF2_GlobalDefWriter_WriteAttribute", offsetof(struct otf2, attribute)},
    {"OTF2_GlobalDefWriter_WriteParameter", offsetof(struct otf2, define_parameter)},
    {"OTF2_GlobalDefWriter_WriteSystemTreeNode", offsetof(struct otf2, node)},
    {"OTF2_GlobalDefWriter_WriteSystemTreeNodeProperty", offsetof(struct otf2, node_property)},
    {"OTF2_GlobalDefWriter_WriteLocationGroup", offsetof(struct otf2, location_group)},
    {"OTF2_GlobalDefWriter_WriteLocation", offsetof(struct otf2, location)},
    {"OTF2_GlobalDefWriter_WriteRegion", offsetof(struct otf2, region)},
    {"OTF2_GlobalDefWriter_WriteGroup", offsetof(struct otf2, group)},
    {"OTF2_GlobalDefWriter_WriteComm", offsetof(struct otf2, comm)},
};

bool otf2_open(struct otf2 *otf2)
{
    /* Debian's name, and that of those who make it */
    static const char *const names[] = {"libopen-trace-format2.so.10", "libotf2.so.10"};
    char why[512] = "";
    memset(otf2, 0, sizeof(*otf2));
    for (size_t n = 0; n < TT_LEN(names) && !otf2->handle; n++) {
        otf2->handle = dlopen(names[n], RTLD_NOW | RTLD_LOCAL);
        if (!otf2->handle && n == 0) (void)snprintf(why, sizeof(why), "%s", dlerror());
    }
    for (size_t i = 0; otf2->handle && i < TT_LEN(wanted); i++) {
        void *symbol = dlsym(otf2->handle, wanted[i].name);
        if (!symbol) {
            (void)snprintf(why, sizeof(why), "it has no %s", wanted[i].name);
            otf2_close(otf2);
        }
        memcpy((char *)otf2 + wanted[i].offset, &symbol, sizeof(symbol));
    }
    if (!otf2->handle) {
        (void)fprintf(stderr,
                      "tutti trace: the library of OTF2 is needed and cannot be used (%s): install "
                      "libopen-trace-format2-10 (Debian, Ubuntu) or OTF2 3 from score-p.org\n",
                      why);
    }
    return otf2->handle != NULL;
}

void otf2_close(struct otf2 *otf2)
{
    if (otf2->handle) (void)dlclose(otf2->handle);
    otf2->handle = NULL;
}
