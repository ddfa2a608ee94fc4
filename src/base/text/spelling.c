/* Levenshtein distance by rows, with swaps of neighbours: names are short, and few are compared. */
#include "base/text/spelling.h"

#include "base/mem.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

size_t tt_edit_distance(const char *a, const char *b)
{
    size_t before[TT_SPELLING_BYTES + 1] = {0}, last[TT_SPELLING_BYTES + 1],
                                      row[TT_SPELLING_BYTES + 1];
    const size_t len = strlen(b);
    if (len > TT_SPELLING_BYTES) return SIZE_MAX;
    for (size_t j = 0; j <= len; j++)
        last[j] = j;
    for (size_t i = 0; a[i]; i++) {
        row[0] = i + 1;
        for (size_t j = 0; j < len; j++) {
            const bool swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
            row[j + 1] =
                tt_min_size(last[j] + (a[i] != b[j]), tt_min_size(last[j + 1], row[j]) + 1);
            if (swapped) row[j + 1] = tt_min_size(row[j + 1], before[j - 1] + 1);
        }
        memcpy(before, last, (len + 1) * sizeof(*last));
        memcpy(last, row, (len + 1) * sizeof(*row));
    }
    return last[len];
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

const char *tt_param_between(const char *words)
{
    return strchr(words, ';') ? "; " : ", ";
}

void tt_param_suggest(const char *words, const char *text, size_t len, char *out, size_t out_bytes)
{
    char wrong[TT_SPELLING_BYTES + 1] = "";
    char word[TT_SPELLING_BYTES + 1] = "";
    const size_t dashes = tt_min_size(strspn(text, "-"), len); /* they are typed right */
    size_t best = (len - dashes + 1) / 3 + 1;                  /* further is no typing mistake */
    if (out_bytes) out[0] = '\0';
    to_lower(wrong, text, len);
    const char *between = tt_param_between(words);
    for (const char *at = words + strspn(words, between); *wrong && *at;
         at += strspn(at, between)) {
        const size_t bytes = strcspn(at, between);
        to_lower(word, at, bytes);
        const size_t distance = tt_edit_distance(wrong, word);
        if (distance < best) {
            best = distance;
            snprintf(out, out_bytes, "; did you mean %.*s?", (int)bytes, at);
        }
        at += bytes;
    }
}
