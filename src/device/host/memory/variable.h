/* Variables of devices. Private to the room; the rest is in host_kernel.h. */
#pragma once

/* Forget those of a module that goes, and free its managed ones. */
void host_variables_drop(const void *module);
