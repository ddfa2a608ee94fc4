/* Numbers in files and in what the kernel says: with a point, whatever locale the program set. */
#pragma once

/* As strtod() in the C locale. Set-up paths. */
double tt_number_read(const char *text, char **end_out);
