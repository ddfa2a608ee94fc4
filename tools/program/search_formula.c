/* Formulas in conjunctive normal form: clauses, and counters of true literals. */
#include "search.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = (SEARCH_MOST_MIB << 20) / (int)sizeof(int) };

int search_variable(struct search_formula *formula)
{
    return ++formula->nvariables;
}

void search_clause(struct search_formula *formula, const int *literals, int count)
{
    size_t wanted = formula->nwords + (size_t)count + 1;
    if (wanted > formula->capacity && !formula->full) {
        size_t capacity = formula->capacity ? 2 * formula->capacity : 1 << 16;
        while (capacity < wanted)
            capacity *= 2;
        int *grown =
            capacity <= MOST_WORDS ? realloc(formula->words, capacity * sizeof(int)) : NULL;
        formula->full = !grown;
        if (grown) formula->words = grown;
        if (grown) formula->capacity = capacity;
    }
    if (formula->full) return;
    memcpy(formula->words + formula->nwords, literals, (size_t)count * sizeof(int));
    formula->words[wanted - 1] = 0;
    formula->nwords = wanted;
    formula->nclauses++;
}

/* A sequential counter (Sinz 2005), one direction: what is true counts. After each literal
 * atleast[j] says that j + 1 of those so far are true. */
int search_count(struct search_formula *formula, const int *literals, int count, int *atleast,
                 int most)
{
    int used = 0;
    for (int k = 0; k < count; k++) {
        int grown = used < most ? used + 1 : most;
        for (int j = grown - 1; j >= 0; j--) { /* from above: atleast[j - 1] is still the older */
            int now = search_variable(formula);
            if (j < used) search_clause(formula, (int[]){-atleast[j], now}, 2);
            if (j == 0) search_clause(formula, (int[]){-literals[k], now}, 2);
            if (j > 0) search_clause(formula, (int[]){-literals[k], -atleast[j - 1], now}, 3);
            atleast[j] = now;
        }
        used = grown;
    }
    return used;
}

void search_formula_fini(struct search_formula *formula)
{
    free(formula->words);
    *formula = (struct search_formula){.words = NULL};
}
