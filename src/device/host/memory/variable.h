/* Device variables; see also host_kernel.h. Private to the room. */
#pragma once

/* Initialise the variables of a module from its device code; `code` may be NULL. */
void tt_host_variables_start(const void *module, const void *code);
/* The module is unloaded: drop its variables and free the managed ones. */
void tt_host_variables_drop(const void *module);
