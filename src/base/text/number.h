/* Decimal numbers in files and in sysfs: the point is ".", whatever locale the program set. */
#pragma once

/* As strtod() in the C locale. Set-up paths. */
double tt_number_read(const char *text, char **end_out);
