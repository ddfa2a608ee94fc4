/* See wrap.h. Columns are counted as characters: a byte that goes on with one (UTF-8) is none. */
#include "wrap.h"

#include "tutti.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

size_t tutti_columns(FILE *out)
{
    struct winsize size;
    const char *variable = getenv("COLUMNS");
    long columns = 0;
    if (!isatty(fileno(out))) return 0;
    if (variable && tutti_parse_int(variable, 1, INT_MAX, &columns)) return (size_t)columns;
    if (!ioctl(fileno(out), TIOCGWINSZ, &size) && size.ws_col > 0) return size.ws_col;
    return 80;
}

static size_t characters(const char *text, size_t len)
{
    size_t count = 0;
    for (size_t i = 0; i < len; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80) count++;
    }
    return count;
}

void tutti_print_wrapped(FILE *out, const char *text, size_t at, size_t indent, size_t width)
{
    bool begins = true; /* of a line: a word that is too long stands there all the same */
    while (*text) {
        size_t len = strcspn(text, " ");
        size_t wide = characters(text, len);
        if (width && !begins && at + 1 + wide > width) {
            (void)fprintf(out, "\n%*s", (int)indent, "");
            at = indent;
            begins = true;
        }
        (void)fprintf(out, "%s%.*s", begins ? "" : " ", (int)len, text);
        at += wide + !begins;
        begins = false;
        text += len;
        text += *text == ' ';
    }
    (void)putc('\n', out);
}
