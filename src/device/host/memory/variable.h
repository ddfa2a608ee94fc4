/* Variables of devices. Private to the room; the rest is in host_kernel.h. */
#pragma once

/* Give those of a module what its device code says that they start with; `code` may be NULL. */
void tt_host_variables_start(const void *module, const void *code);
/* Forget those of a module that goes, and free its managed ones. */
void tt_host_variables_drop(const void *module);
