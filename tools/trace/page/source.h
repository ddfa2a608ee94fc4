/* The fixed text of the page, in lines, made by embed.py; NULL behind the last one. The run's data
 * stands between the two. */
#pragma once

extern const char *const page_source_head[];
extern const char *const page_source_tail[];
