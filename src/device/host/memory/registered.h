/* What the room does with registered host memory. Private to the room. */
#pragma once

void tt_host_registrations_reset(
    int device); /* of all that were made when the device was current */
