/* Levenshtein distance by rows: names are short, and few are compared. */
#include "base/text/spelling.h"

#include "base/mem.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

size_t tt_edit_distance(const char *a, const char *b)
{
    size_t row[TT_SPELLING_BYTES + 1];
    const size_t len = strlen(b);
    if (len > TT_SPELLING_BYTES) return SIZE_MAX;
    for (size_t j = 0; j <= len; j++) {
        row[j] = j;
    }
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < len; j++) {
            const size_t change = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = tt_min_size(change, tt_min_size(row[j], row[j + 1]) + 1);
        }
    }
    return row[len];
}

/* Copy in lower case, cut to what tt_edit_distance() takes. */
static void to_lower(char *out, const char *text, size_t len)
{
    size_t bytes = tt_min_size(len, TT_SPELLING_BYTES);
    for (size_t i = 0; i < bytes; i++) {
        out[i] = (char)tolower((unsigned char)text[i]);
    }
    out[bytes] = '\0';
}

void tt_param_suggest(const char *words, const char *text, size_t len, char *out, size_t out_bytes)
{
    char wrong[TT_SPELLING_BYTES + 1] = "";
    char word[TT_SPELLING_BYTES + 1] = "";
    size_t best = len / 3 + 2; /* further away is no typing mistake */
    if (out_bytes) out[0] = '\0';
    to_lower(wrong, text, len);
    for (const char *at = words + strspn(words, ", "); *wrong && *at; at += strspn(at, ", ")) {
        const size_t bytes = strcspn(at, ", ");
        to_lower(word, at, bytes);
        const size_t distance = tt_edit_distance(wrong, word);
        if (distance < best) {
            best = distance;
            snprintf(out, out_bytes, "; did you mean %.*s?", (int)bytes, at);
        }
        at += bytes;
    }
}
