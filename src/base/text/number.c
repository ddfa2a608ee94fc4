/* strtod() goes by the locale of the thread, which is the program's: "16.0" would be 16 and a rest
 * where numbers have a comma. */
#include "base/text/number.h"

#include <locale.h>
#include <stdlib.h>

double tt_number_read(const char *text, char **end_out)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", NULL);
    double value = plain ? strtod_l(text, end_out, plain) : strtod(text, end_out);
    if (plain) freelocale(plain);
    return value;
}
