/* Memory in parts, as other files of the room see it. Private to the room. */
#pragma once

#include <stddef.h>

/* End mappings that only work kept which is over. Takes the lock of all mappings. */
void tt_host_vmm_reclaim(void);
/* The other addresses of what is mapped at ptr, at most `room` of them; their number. *bytes
 * shrinks to what lies at each of them in one piece. */
size_t tt_host_vmm_aliases(const void *ptr, size_t *bytes, const void **aliases, size_t room);
