/* The events of joined blocks, in texts of a few thousand each: a browser makes numbers only of
 * those that the reader looks at closely. */
#include "numbers.h"
#include "pack.h"

#include "base/mem.h"

#include <stdlib.h>

enum { CHUNK_EVENTS = 4096 };

static bool is_joined(const struct page *page, uint32_t block)
{
    return page->blocks[block].count > 1;
}

/* Joined blocks of one row, until there are enough events. */
static bool make_chunks(struct page *page)
{
    uint32_t detail = 0;
    struct page_chunk *chunk = NULL;
    page->chunks = tt_calloc(page->nblocks + (size_t)1, sizeof(page->chunks[0]));
    if (!page->chunks) return false;
    for (uint32_t b = 0, row = 0; b < page->nblocks; b++) {
        while (b >= page->rows[row].first + page->rows[row].count)
            row++;
        if (!is_joined(page, b)) continue;
        if (!chunk || page->rows[row].first > chunk->first ||
            detail - chunk->detail >= CHUNK_EVENTS) {
            chunk = &page->chunks[page->nchunks++];
            *chunk = (struct page_chunk){.first = b, .detail = detail};
        }
        chunk->last = b + 1;
        detail += page->blocks[b].count;
    }
    return true;
}

bool page_find_details(struct page *page, uint64_t limit)
{
    uint64_t sum = 0;
    for (uint32_t b = 0; b < page->nblocks; b++)
        sum += is_joined(page, b) ? page->blocks[b].count : 0;
    if (sum == 0 || sum > limit) return true;
    uint32_t *next = tt_calloc(page->nblocks + (size_t)1, sizeof(*next));
    page->details = tt_calloc(sum, sizeof(page->details[0]));
    bool good = next && page->details && make_chunks(page);
    for (uint32_t b = 0, at = 0; good && b < page->nblocks; b++) {
        next[b] = at;
        at += is_joined(page, b) ? page->blocks[b].count : 0;
    }
    for (uint32_t i = 0; good && i < page->run->nevents; i++) {
        uint32_t e = page->lanes.order[i], b = page->block_of_event[e];
        if (is_joined(page, b)) page->details[next[b]++] = e;
    }
    page->ndetailed = good ? (uint32_t)sum : 0;
    free(next);
    return good;
}

static uint64_t not_negative(int64_t number)
{
    return number < 0 ? 0 : (uint64_t)number;
}

static void put_event(const struct page *page, uint32_t detail, int64_t before, struct numbers *to)
{
    const struct timeline_event *event = &page->run->events[page->details[detail]];
    bool operation = event->type == TIMELINE_COLL || event->type == TIMELINE_P2P;
    numbers_put(to, not_negative(event->start_nsec - before));
    numbers_put(to, not_negative(lanes_end(&page->lanes, event) - event->start_nsec));
    numbers_put(to, page->kind_of_detail[detail]);
    numbers_put(to, operation ? event->seq : not_negative(event->steps));
    numbers_put(to, not_negative((int64_t)event->peer + 1));
}

/* Times count from the event before; of a block's first one from the begin of the run. */
static void put_block(const struct page *page, uint32_t block, uint32_t detail, struct numbers *to)
{
    int64_t before = 0;
    for (uint32_t k = 0; k < page->blocks[block].count; k++) {
        put_event(page, detail + k, before, to);
        before = page->run->events[page->details[detail + k]].start_nsec;
    }
}

void page_put_details(const struct page *page, struct out *out)
{
    for (uint32_t c = 0; c < page->nchunks; c++) {
        const struct page_chunk *chunk = &page->chunks[c];
        struct numbers to = {.out = out};
        uint32_t detail = chunk->detail;
        out_print(out, "<script type=\"text/plain\" id=\"detail%u\">", c);
        for (uint32_t b = chunk->first; b < chunk->last; b++) {
            if (!is_joined(page, b)) continue;
            put_block(page, b, detail, &to);
            detail += page->blocks[b].count;
        }
        numbers_end(&to);
        out_text(out, "</script>\n");
    }
}
