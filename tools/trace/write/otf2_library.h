/* The library of OTF2, opened when an archive is written: the command needs it for nothing else. */
#pragma once

#include <otf2/otf2.h>
#include <stdbool.h>

/* What is called of it, under its own names. */
struct otf2 {
    void *handle; /* owned */
    __typeof__(OTF2_Archive_Open) *open;
    __typeof__(OTF2_Archive_Close) *close;
    __typeof__(OTF2_Archive_SetCreator) *set_creator;
    __typeof__(OTF2_Archive_SetFlushCallbacks) *set_flush;
    __typeof__(OTF2_Archive_SetSerialCollectiveCallbacks) *set_serial;
    __typeof__(OTF2_Archive_OpenEvtFiles) *open_events;
    __typeof__(OTF2_Archive_CloseEvtFiles) *close_events;
    __typeof__(OTF2_Archive_OpenDefFiles) *open_definitions;
    __typeof__(OTF2_Archive_CloseDefFiles) *close_definitions;
    __typeof__(OTF2_Archive_GetEvtWriter) *events_of;
    __typeof__(OTF2_Archive_CloseEvtWriter) *close_events_of;
    __typeof__(OTF2_Archive_GetDefWriter) *definitions_of;
    __typeof__(OTF2_Archive_CloseDefWriter) *close_definitions_of;
    __typeof__(OTF2_Archive_GetGlobalDefWriter) *global;
    __typeof__(OTF2_Archive_CloseGlobalDefWriter) *close_global;
    __typeof__(OTF2_Error_RegisterCallback) *on_error;
    __typeof__(OTF2_Error_GetDescription) *describe;
    __typeof__(OTF2_AttributeList_New) *facts_new;
    __typeof__(OTF2_AttributeList_Delete) *facts_delete;
    __typeof__(OTF2_AttributeList_AddUint64) *add_number;
    __typeof__(OTF2_AttributeList_AddStringRef) *add_text;
    __typeof__(OTF2_EvtWriter_Enter) *enter;
    __typeof__(OTF2_EvtWriter_Leave) *leave;
    __typeof__(OTF2_EvtWriter_NonBlockingCollectiveRequest) *collective_begins;
    __typeof__(OTF2_EvtWriter_NonBlockingCollectiveComplete) *collective_ends;
    __typeof__(OTF2_EvtWriter_MpiIsend) *send_begins;
    __typeof__(OTF2_EvtWriter_MpiIsendComplete) *send_ends;
    __typeof__(OTF2_EvtWriter_MpiIrecvRequest) *receive_begins;
    __typeof__(OTF2_EvtWriter_MpiIrecv) *receive_ends;
    __typeof__(OTF2_EvtWriter_ParameterString) *parameter;
    __typeof__(OTF2_EvtWriter_GetNumberOfEvents) *count_events;
    __typeof__(OTF2_GlobalDefWriter_WriteClockProperties) *clock;
    __typeof__(OTF2_GlobalDefWriter_WriteString) *string;
    __typeof__(OTF2_GlobalDefWriter_WriteAttribute) *attribute;
    __typeof__(OTF2_GlobalDefWriter_WriteParameter) *define_parameter;
    __typeof__(OTF2_GlobalDefWriter_WriteSystemTreeNode) *node;
    __typeof__(OTF2_GlobalDefWriter_WriteSystemTreeNodeProperty) *node_property;
    __typeof__(OTF2_GlobalDefWriter_WriteLocationGroup) *location_group;
    __typeof__(OTF2_GlobalDefWriter_WriteLocation) *location;
    __typeof__(OTF2_GlobalDefWriter_WriteRegion) *region;
    __typeof__(OTF2_GlobalDefWriter_WriteGroup) *group;
    __typeof__(OTF2_GlobalDefWriter_WriteComm) *comm;
};

/* False: it is not there, or lacks something, and said. */
bool otf2_open(struct otf2 *otf2);
void otf2_close(struct otf2 *otf2);
