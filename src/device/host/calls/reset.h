/* What each part of a device's state does when the device is reset. Private to the room. */
#pragma once

void tt_host_events_reset(int device);   /* destroys them */
void tt_host_pools_reset(int device);    /* forgets their blocks; before the device's memory goes */
void tt_host_settings_reset(int device); /* limits, and access of peers from and to it */
void tt_host_libraries_reset(
    int device); /* forgets their variables; before the device's memory goes */
