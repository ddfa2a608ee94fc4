/* Registered host memory. Private to the room. */
#pragma once

void tt_host_registrations_reset(int device); /* unregister all that was registered on the device */
