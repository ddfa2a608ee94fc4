/* Memory in parts, as other files of the room see it. Private to the room. */
#pragma once

/* End mappings that only work kept which is over. Takes the lock of all mappings. */
void host_vmm_settle(void);
