/* What the page draws: rows of events that lie behind each other, the shortest ones joined where
 * there are too many, so that a page stays bounded whatever the run's size. */
#pragma once

#include "../tool.h"
#include "../write/lanes.h"
#include "../write/out.h"

/* Events that lie on one depth of a lane. */
struct page_row {
    uint32_t lane;
    uint32_t first, count; /* of page.blocks */
};

/* One event, or several short ones of one type that lie close to each other in a row. */
struct page_block {
    uint32_t event; /* the first of them */
    uint32_t count;
    uint32_t kind; /* of page.kinds */
    int64_t end_nsec;
};

/* What many events have in common. Compared as bytes, so it has no holes. */
enum page_mark { PAGE_OPEN = 1, PAGE_FLAG = 2 };
struct page_kind {
    uint32_t comm; /* or TIMELINE_NONE */
    uint16_t func, datatype, algo, proto, channel;
    uint8_t type;
    uint8_t marks; /* enum page_mark */
};
_Static_assert(sizeof(struct page_kind) == 16, "a hole in struct page_kind");

/* Joined blocks that lie behind each other, whose events are one text of the page: [first, last).
 * Their events are page.details[detail ...). */
struct page_chunk {
    uint32_t first, last, detail;
};

struct page {
    const struct timeline *run;      /* borrowed */
    const struct trace_stops *stops; /* borrowed */
    bool *stopped;                   /* owned; by operation: one of the stops */
    struct lanes lanes;              /* owned */
    struct page_row *rows;           /* owned; in the order of lanes and depths */
    struct page_block *blocks;       /* owned; in the order of rows and begins */
    struct page_kind *kinds;         /* owned */
    uint32_t *block_of_event;        /* owned */
    uint32_t nrows, nblocks, nkinds;
    int64_t join_nsec;      /* shorter events may be joined; 0: each event is drawn */
    int64_t operation_nsec; /* shorter operations are left out; 0: none is */
    uint32_t noperations;   /* that are drawn */
    uint32_t nstates;       /* of events that are drawn alone; 0 where they are too many */
    uint32_t all_states;    /* of these events */
    /* What joined blocks are made of, for a closer look; none where it is too much. */
    uint32_t *details;         /* owned; events, in the order of blocks and begins */
    uint32_t *kind_of_detail;  /* owned */
    struct page_chunk *chunks; /* owned */
    uint32_t ndetailed, nchunks;
};

/* Lay out a run as at most about `limit` blocks, with the events of those that were joined if they
 * are no more than `details`. False: memory is short, and said. */
bool page_pack(const struct timeline *run, const struct trace_stops *stops, uint64_t limit,
               uint64_t details, struct page *page);
void page_fini(struct page *page);

/* Write the blocks of all rows and then the operations as numbers of 7 bits a byte, the lowest
 * first, in base64; tools/trace/page/data.js reads them. */
void page_put_numbers(const struct page *page, struct out *out);

/* details.c: make page->details and chunks. False: memory is short. */
bool page_find_details(struct page *page, uint64_t limit);
/* A script element of numbers for each chunk, which data.js reads when it is looked at. */
void page_put_details(const struct page *page, struct out *out);

/* Whether the page has this operation. */
bool page_has_operation(const struct page *page, const struct timeline_operation *operation);
