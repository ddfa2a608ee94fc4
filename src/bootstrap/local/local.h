/* What the service must know of the descriptor server. */
#pragma once

/* In a forked child: forget what was served and mapped. */
void tt_local_orphan(void);
