/* Rows by lane and depth; events shorter than a time that doubles until what is left is few enough.
 */
#include "pack.h"

#include "numbers.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 8 };

/* The events of a lane that have not ended yet. */
struct depth {
    int64_t ends[DEEPEST];
    uint32_t open;
};

/* The blocks of a row in the cell that it is at while events are joined. */
struct last {
    int64_t cell;
    uint32_t types; /* bits of those that have a block */
    uint32_t blocks[TIMELINE_TYPE_COUNT_];
};

/* ---- rows ---- */

/* row_of gets for each event its lane times DEEPEST plus its depth. */
static bool find_depths(const struct page *page, uint32_t *row_of)
{
    const struct timeline *run = page->run;
    struct depth *depths = tt_calloc(page->lanes.nlanes + (size_t)1, sizeof(*depths));
    for (uint32_t i = 0; depths && i < run->nevents; i++) {
        uint32_t e = page->lanes.order[i], lane = page->lanes.of_event[e];
        const struct timeline_event *event = &run->events[e];
        struct depth *depth = &depths[lane];
        while (depth->open > 0 && depth->ends[depth->open - 1] <= event->start_nsec)
            depth->open--;
        uint32_t at = depth->open < DEEPEST ? depth->open++ : DEEPEST - 1;
        depth->ends[at] = lanes_end(&page->lanes, event);
        row_of[e] = lane * DEEPEST + at;
    }
    bool good = depths != NULL;
    free(depths);
    return good;
}

/* The rows that have events; row_of names them from now on. */
static bool make_rows(struct page *page, uint32_t *row_of)
{
    uint32_t all = page->lanes.nlanes * DEEPEST;
    uint32_t *number = tt_calloc(all + (size_t)1, sizeof(*number));
    page->rows = tt_calloc(all + (size_t)1, sizeof(page->rows[0]));
    bool good = number && page->rows;
    for (uint32_t e = 0; good && e < page->run->nevents; e++)
        number[row_of[e]] = 1;
    for (uint32_t r = 0; good && r < all; r++) {
        if (!number[r]) continue;
        page->rows[page->nrows].lane = r / DEEPEST;
        number[r] = page->nrows++;
    }
    for (uint32_t e = 0; good && e < page->run->nevents; e++)
        row_of[e] = number[row_of[e]];
    free(number);
    return good;
}

/* ---- blocks ---- */

/* Whether the event goes on with a block of its row: both short, of one type, in one cell, and
 * nothing long between them. */
static bool goes_on(const struct page *page, const struct timeline_event *event, struct last *last)
{
    int64_t join = page->join_nsec;
    bool is_short = join && lanes_end(&page->lanes, event) - event->start_nsec < join;
    int64_t cell = is_short ? event->start_nsec / join : -1;
    if (!is_short || cell != last->cell) last->types = 0;
    last->cell = cell;
    bool same = last->types >> event->type & 1;
    if (is_short) last->types |= 1u << event->type;
    return same;
}

/* How many blocks each row has with the time of page->join_nsec; the sum. */
static uint64_t count_blocks(struct page *page, const uint32_t *row_of, struct last *lasts)
{
    uint64_t sum = 0;
    memset(lasts, 0, page->nrows * sizeof(*lasts));
    for (uint32_t r = 0; r < page->nrows; r++)
        page->rows[r].count = 0;
    for (uint32_t i = 0; i < page->run->nevents; i++) {
        uint32_t e = page->lanes.order[i], row = row_of[e];
        if (goes_on(page, &page->run->events[e], &lasts[row])) continue;
        page->rows[row].count++;
        sum++;
    }
    return sum;
}

static void fill_blocks(struct page *page, const uint32_t *row_of, struct last *lasts)
{
    memset(lasts, 0, page->nrows * sizeof(*lasts));
    for (uint32_t r = 0, first = 0; r < page->nrows; r++) {
        page->rows[r].first = first;
        first += page->rows[r].count;
        page->rows[r].count = 0;
    }
    for (uint32_t i = 0; i < page->run->nevents; i++) {
        uint32_t e = page->lanes.order[i];
        struct page_row *row = &page->rows[row_of[e]];
        struct last *last = &lasts[row_of[e]];
        const struct timeline_event *event = &page->run->events[e];
        int64_t end_nsec = lanes_end(&page->lanes, event);
        if (!goes_on(page, event, last)) {
            last->blocks[event->type] = row->first + row->count++;
            page->blocks[last->blocks[event->type]] =
                (struct page_block){.event = e, .end_nsec = end_nsec};
        }
        struct page_block *block = &page->blocks[last->blocks[event->type]];
        block->count++;
        if (end_nsec > block->end_nsec) block->end_nsec = end_nsec;
        page->block_of_event[e] = last->blocks[event->type];
    }
    for (uint32_t r = 0; r < page->nrows; r++) {
        struct page_block *block = &page->blocks[page->rows[r].first];
        /* blocks of one cell may lie across each other; their ends are in order for who seeks */
        for (uint32_t k = 1; k < page->rows[r].count; k++) {
            if (block[k].end_nsec < block[k - 1].end_nsec)
                block[k].end_nsec = block[k - 1].end_nsec;
        }
    }
}

static bool make_blocks(struct page *page, const uint32_t *row_of, uint64_t limit)
{
    struct last *lasts = tt_calloc(page->nrows + (size_t)1, sizeof(*lasts));
    if (!lasts) return false;
    int64_t whole_nsec = page->lanes.end_nsec;
    uint64_t sum = count_blocks(page, row_of, lasts);
    while (sum > limit && page->join_nsec <= whole_nsec) {
        page->join_nsec = page->join_nsec ? page->join_nsec * 2 : 64;
        sum = count_blocks(page, row_of, lasts);
    }
    page->nblocks = (uint32_t)sum;
    page->blocks = tt_calloc(sum + 1, sizeof(page->blocks[0]));
    page->block_of_event =
        tt_calloc(page->run->nevents + (size_t)1, sizeof(page->block_of_event[0]));
    bool good = page->blocks && page->block_of_event;
    if (good) fill_blocks(page, row_of, lasts);
    free(lasts);
    return good;
}

/* ---- kinds ---- */

static struct page_kind kind_of(const struct timeline *run, const struct timeline_event *event)
{
    bool operation = event->type == TIMELINE_COLL || event->type == TIMELINE_P2P;
    bool open = event->stop_nsec == TIMELINE_OPEN, member = event->member != TIMELINE_NONE;
    return (struct page_kind){
        .comm = member ? run->members[event->member].comm : TIMELINE_NONE,
        .func = event->func,
        .datatype = event->datatype,
        .algo = event->algo,
        .proto = event->proto,
        .channel = operation ? event->channel : 0,
        .type = event->type,
        .marks = (uint8_t)((open ? PAGE_OPEN : 0) | (event->flag ? PAGE_FLAG : 0)),
    };
}

/* Where kinds are found, while they are made. */
struct kind_table {
    uint32_t *slots; /* kind plus 1 */
    uint32_t count;
};

/* The number of the event's kind, which is new perhaps; UINT32_MAX: memory is short. */
static uint32_t kind_number(struct page *page, struct kind_table *table, uint32_t e)
{
    struct page_kind kind = kind_of(page->run, &page->run->events[e]);
    uint32_t at = (uint32_t)tt_hash_bytes(TT_HASH_START, &kind, sizeof(kind)) & (table->count - 1);
    while (table->slots[at] && memcmp(&page->kinds[table->slots[at] - 1], &kind, sizeof(kind)) != 0)
        at = (at + 1) & (table->count - 1);
    if (table->slots[at]) return table->slots[at] - 1;
    if ((page->nkinds & (page->nkinds - 1)) == 0) {
        size_t room = page->nkinds ? page->nkinds * (size_t)2 : 1;
        struct page_kind *kinds = realloc(page->kinds, room * sizeof(*kinds));
        if (!kinds) return UINT32_MAX;
        page->kinds = kinds;
    }
    page->kinds[page->nkinds] = kind;
    table->slots[at] = ++page->nkinds;
    return page->nkinds - 1;
}

/* Kinds of the blocks' first events, and of those in the details. */
static bool make_kinds(struct page *page)
{
    struct kind_table table = {.count = 256};
    uint64_t most = page->nblocks + (uint64_t)page->ndetailed;
    while (table.count < most * 2 && table.count < 1u << 31)
        table.count *= 2;
    table.slots = tt_calloc(table.count, sizeof(*table.slots));
    bool good = table.slots != NULL;
    for (uint32_t b = 0; good && b < page->nblocks; b++) {
        page->blocks[b].kind = kind_number(page, &table, page->blocks[b].event);
        good = page->blocks[b].kind != UINT32_MAX;
    }
    if (page->ndetailed) page->kind_of_detail = tt_calloc(page->ndetailed, sizeof(uint32_t));
    if (page->ndetailed && !page->kind_of_detail) good = false;
    for (uint32_t d = 0; good && d < page->ndetailed; d++) {
        page->kind_of_detail[d] = kind_number(page, &table, page->details[d]);
        good = page->kind_of_detail[d] != UINT32_MAX;
    }
    free(table.slots);
    return good;
}

/* ---- operations ---- */

static int64_t span_of(const struct page *page, const struct timeline_operation *operation)
{
    int64_t end = operation->last_end_nsec;
    return (end == TIMELINE_OPEN ? page->lanes.end_nsec : end) - operation->first_begin_nsec;
}

bool page_has_operation(const struct page *page, const struct timeline_operation *operation)
{
    bool stopped = page->stopped[operation - page->run->operations];
    return stopped || page->operation_nsec == 0 || span_of(page, operation) >= page->operation_nsec;
}

static void choose_operations(struct page *page, uint64_t limit)
{
    for (;;) {
        uint64_t parts = 0;
        page->noperations = 0;
        for (uint32_t o = 0; o < page->run->noperations; o++) {
            if (!page_has_operation(page, &page->run->operations[o])) continue;
            parts += page->run->operations[o].count;
            page->noperations++;
        }
        if (parts <= limit || page->operation_nsec > page->lanes.end_nsec) return;
        page->operation_nsec = page->operation_nsec ? page->operation_nsec * 2 : 64;
    }
}

/* ---- states ---- */

static uint32_t first_state(const struct page *page, const struct page_block *block)
{
    return block->count == 1 ? page->run->events[block->event].states : TIMELINE_NONE;
}

/* As many as there may be blocks: more would make the page larger than its limit lets it be. */
static void choose_states(struct page *page, uint64_t limit)
{
    const struct timeline_state *states = page->run->states;
    for (uint32_t b = 0; b < page->nblocks; b++) {
        uint32_t at = first_state(page, &page->blocks[b]);
        for (; at != TIMELINE_NONE; at = states[at].next)
            page->all_states++;
    }
    page->nstates = page->all_states <= limit ? page->all_states : 0;
}

/* Mark what the page must have; what has no end is drawn a little longer than to the run's last
 * event, which its begin may be. */
static bool keep_stops(struct page *page)
{
    const struct timeline *run = page->run;
    const struct trace_stops *stops = page->stops;
    bool open = false;
    page->stopped = tt_calloc(run->noperations + (size_t)1, sizeof(page->stopped[0]));
    if (!page->stopped) return false;
    for (uint32_t s = 0; s < stops->count; s++) {
        page->stopped[stops->list[s].operation] = true;
        open |= stops->list[s].open;
    }
    int64_t *end_nsec = &page->lanes.end_nsec;
    if (open && *end_nsec < INT64_MAX / 2)
        *end_nsec += (*end_nsec - run->operations[0].first_begin_nsec) / 8;
    return true;
}

bool page_pack(const struct timeline *run, const struct trace_stops *stops, uint64_t limit,
               uint64_t details, struct page *page)
{
    *page = (struct page){.run = run, .stops = stops};
    if (!lanes_make(run, &page->lanes)) return false;
    uint32_t *row_of = tt_calloc(run->nevents + (size_t)1, sizeof(*row_of));
    bool good = row_of && keep_stops(page) && find_depths(page, row_of) &&
                make_rows(page, row_of) && make_blocks(page, row_of, limit) &&
                page_find_details(page, details) && make_kinds(page);
    if (good) choose_operations(page, limit);
    if (good) choose_states(page, limit);
    if (!good) (void)fprintf(stderr, "tutti trace: out of memory\n");
    free(row_of);
    return good;
}

void page_fini(struct page *page)
{
    lanes_fini(&page->lanes);
    free(page->rows);
    free(page->blocks);
    free(page->kinds);
    free(page->details);
    free(page->kind_of_detail);
    free(page->chunks);
    free(page->block_of_event);
    free(page->stopped);
    memset(page, 0, sizeof(*page));
}

/* ---- numbers ---- */

static uint64_t not_negative(int64_t number)
{
    return number < 0 ? 0 : (uint64_t)number;
}

/* How many, then each one's time after the one before, name and value. */
static void put_states(const struct page *page, const struct page_block *block, struct numbers *to)
{
    const struct timeline_state *states = page->run->states;
    uint32_t first = page->nstates ? first_state(page, block) : TIMELINE_NONE, count = 0;
    int64_t before = page->run->events[block->event].start_nsec;
    for (uint32_t at = first; at != TIMELINE_NONE; at = states[at].next)
        count++;
    numbers_put(to, count);
    for (uint32_t at = first; at != TIMELINE_NONE; at = states[at].next) {
        numbers_put_signed(to, states[at].at_nsec - before);
        numbers_put(to, states[at].name);
        numbers_put(to, states[at].value);
        before = states[at].at_nsec;
    }
}

static void put_row(const struct page *page, const struct page_row *row, struct numbers *to)
{
    int64_t before = 0;
    for (uint32_t b = row->first; b < row->first + row->count; b++) {
        const struct page_block *block = &page->blocks[b];
        const struct timeline_event *event = &page->run->events[block->event];
        bool sized = event->type == TIMELINE_PROXY_OP;
        uint64_t number = event->seq;
        if (event->type != TIMELINE_COLL && event->type != TIMELINE_P2P)
            number = not_negative(event->steps);
        numbers_put(to, not_negative(event->start_nsec - before));
        numbers_put(to, not_negative(block->end_nsec - event->start_nsec));
        numbers_put(to, block->kind);
        numbers_put(to, block->count);
        numbers_put(to, event->parent != TIMELINE_NONE);
        if (event->parent != TIMELINE_NONE)
            numbers_put_signed(to, (int64_t)b - page->block_of_event[event->parent]);
        numbers_put(to, number);
        numbers_put(to, sized ? not_negative(event->chunk_bytes) : event->count);
        numbers_put(to, not_negative((int64_t)event->peer + 1));
        put_states(page, block, to);
        before = event->start_nsec;
    }
}

static void put_operation(const struct page *page, const struct timeline_operation *operation,
                          struct numbers *to, int64_t *before)
{
    numbers_put_signed(to, operation->first_begin_nsec - *before);
    *before = operation->first_begin_nsec;
    numbers_put(to, operation->comm);
    numbers_put(to, operation->func);
    numbers_put(to, operation->seq);
    numbers_put(to, (operation->message ? 1u : 0u) | (operation->whole ? 2u : 0u));
    numbers_put(to, operation->count);
    for (uint32_t k = 0; k < operation->count; k++) {
        const struct timeline_part *part = &page->run->parts[operation->first + k];
        bool open = part->end_nsec == TIMELINE_OPEN;
        numbers_put(to, page->block_of_event[part->event]);
        numbers_put(to, not_negative(part->begin_nsec - operation->first_begin_nsec));
        numbers_put(to, open ? 0 : 1 + not_negative(part->end_nsec - part->begin_nsec));
    }
}

void page_put_numbers(const struct page *page, struct out *out)
{
    struct numbers to = {.out = out};
    int64_t before = 0;
    for (uint32_t r = 0; r < page->nrows; r++)
        put_row(page, &page->rows[r], &to);
    for (uint32_t o = 0; o < page->run->noperations; o++) {
        const struct timeline_operation *operation = &page->run->operations[o];
        if (page_has_operation(page, operation)) put_operation(page, operation, &to, &before);
    }
    numbers_end(&to);
}
