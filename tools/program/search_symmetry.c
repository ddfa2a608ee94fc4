/* Symmetries of a machine: a group of ways to exchange its ranks after which the links are the
 * same.
 *
 * A schedule that looks the same after each of them is given by those of a few chunks: on a ring
 * all ranks do what rank 0 does, turned. Such schedules are fewer, and their formula is shorter by
 * the size of the group, so they are looked for first; that there is none of them says nothing of
 * others. Each chunk has to come from one other chunk in one way.
 *
 * Where each rank has chunks of its own, only the identity may leave a rank in its place; an
 * element makes of each chunk that of another rank. Where a root has all, or (direct AllReduces)
 * none has any, the chunks of a kind are cut into as many as the group has elements: the first is
 * free, and element e makes the e-th of it. There the root stays, as may others, but no link does:
 * it would carry all of those. */
#include "search.h"

#include <string.h>

enum { MOST_TRIED = 200000 }; /* ranks that are placed; a machine like any other needs hundreds */
enum { MOST_IMAGES = 400, MOST_CLOSED = 1000 };

struct finder {
    const struct search_goal *goal;
    const struct search_machine *machine;
    int width[SEARCH_MOST_RANKS][SEARCH_MOST_RANKS];
    bool turns;                  /* what may not stay are links */
    struct search_group best;    /* where ranks may not stay */
    struct search_group *groups; /* where links may not; borrowed */
    int ngroups, ntried, nimages;
    int images[MOST_IMAGES][SEARCH_MOST_RANKS];
};

/* Whether the kinds of chunks are one for each rank, or pair of ranks. */
static bool has_own_kinds(const struct search_goal *goal)
{
    uint32_t from = 0;
    for (int k = 0; k < goal->nkinds; k++)
        from |= UINT32_C(1) << goal->kinds[k].from;
    return from == UINT32_MAX >> (SEARCH_MOST_RANKS - goal->nranks);
}

static bool has_root(const struct search_goal *goal)
{
    return !goal->exchanges && !has_own_kinds(goal);
}

static bool has_image(const struct search_group *group, const int *image, int nranks)
{
    bool has = false;
    for (int e = 0; e < group->count && !has; e++)
        has = memcmp(group->images[e], image, (size_t)nranks * sizeof(int)) == 0;
    return has;
}

/* Whether nothing stays in its place that may not. */
static bool moves_all(const struct finder *finder, const int *image)
{
    const struct search_machine *machine = finder->machine;
    bool moves = true;
    for (int r = 0; r < machine->nranks && !finder->turns; r++)
        moves = moves && image[r] != r;
    for (int l = 0; l < machine->nlinks && finder->turns; l++) {
        const struct search_link *link = &machine->links[l];
        moves = moves && (image[link->from] != link->from || image[link->to] != link->to);
    }
    return moves;
}

/* Add `image` and all that follows from it. False: something would stay in its place, or the group
 * has too many elements. */
static bool close_group(const struct finder *finder, struct search_group *group, const int *image)
{
    int nranks = finder->machine->nranks, most = finder->turns ? SEARCH_MOST_RANKS : nranks;
    if (group->count == most || has_image(group, image, nranks)) return false;
    memcpy(group->images[group->count++], image, (size_t)nranks * sizeof(int));
    for (int k = 0; k < group->count * group->count; k++) {
        const int *first = group->images[k % group->count], *then = group->images[k / group->count];
        int both[SEARCH_MOST_RANKS];
        for (int r = 0; r < nranks; r++)
            both[r] = then[first[r]];
        if (has_image(group, both, nranks)) continue;
        if (!moves_all(finder, both) || group->count == most) return false;
        memcpy(group->images[group->count++], both, sizeof(both));
        k = -1; /* all pairs again */
    }
    return true;
}

static bool fits(const struct finder *finder, const int *image, int rank)
{
    bool fit = finder->turns || image[rank] != rank;
    if (rank == 0 && has_root(finder->goal)) fit = image[0] == 0;
    for (int r = 0; r < rank && fit; r++) {
        fit = image[r] != image[rank] &&
              finder->width[r][rank] == finder->width[image[r]][image[rank]] &&
              finder->width[rank][r] == finder->width[image[rank]][image[r]];
    }
    return fit;
}

/* ---- each rank has chunks of its own ---- */

static void grow(struct finder *finder, const struct search_group *group, int first);

/* Place `rank` and those after it; each whole way is tried as one more element of the group. */
static void place(struct finder *finder, const struct search_group *group, int *image, int rank)
{
    int nranks = finder->machine->nranks;
    if (rank == nranks) {
        struct search_group larger = *group;
        if (close_group(finder, &larger, image)) grow(finder, &larger, image[0] + 1);
        return;
    }
    for (int r = 0; r < nranks; r++) {
        if (finder->best.count == nranks || ++finder->ntried > MOST_TRIED) return;
        image[rank] = r;
        if (fits(finder, image, rank)) place(finder, group, image, rank + 1);
    }
}

/* Take further elements into the group: such as lead rank 0 to where none leads it yet. */
static void grow(struct finder *finder, const struct search_group *group, int first)
{
    int nranks = finder->machine->nranks, image[SEARCH_MOST_RANKS];
    if (group->count > finder->best.count) finder->best = *group;
    for (int to = first; to < nranks; to++) {
        bool reached = false;
        for (int e = 0; e < group->count; e++)
            reached = reached || group->images[e][0] == to;
        image[0] = to;
        if (!reached) place(finder, group, image, 1);
    }
}

/* ---- one has all, or none has any ---- */

/* One of each order is kept, the largest first. */
static void keep(struct finder *finder, const struct search_group *group)
{
    int at = 0;
    while (at < finder->ngroups && finder->groups[at].count > group->count)
        at++;
    bool known = at < finder->ngroups && finder->groups[at].count == group->count;
    if (known || at == SEARCH_MOST_GROUPS) return;
    int last = finder->ngroups < SEARCH_MOST_GROUPS ? finder->ngroups++ : finder->ngroups - 1;
    memmove(&finder->groups[at + 1], &finder->groups[at],
            (size_t)(last - at) * sizeof(*finder->groups));
    finder->groups[at] = *group;
}

/* All ways to place `rank` and those after it. */
static void list_images(struct finder *finder, int *image, int rank)
{
    int nranks = finder->machine->nranks;
    if (rank == nranks) {
        if (moves_all(finder, image))
            memcpy(finder->images[finder->nimages++], image, sizeof(*finder->images));
        return;
    }
    for (int r = 0; r < nranks; r++) {
        if (finder->nimages == MOST_IMAGES || ++finder->ntried > MOST_TRIED) return;
        image[rank] = r;
        if (fits(finder, image, rank)) list_images(finder, image, rank + 1);
    }
}

/* Groups of one element and its powers; then others that contain one of these. */
static void combine(struct finder *finder, const struct search_group *trivial)
{
    struct search_group cyclic[SEARCH_MOST_GROUPS];
    for (int k = 0; k < finder->nimages; k++) {
        struct search_group group = *trivial;
        if (close_group(finder, &group, finder->images[k])) keep(finder, &group);
    }
    int ncyclic = finder->ngroups, nclosed = 0;
    memcpy(cyclic, finder->groups, (size_t)ncyclic * sizeof(*cyclic));
    for (int g = 0; g < ncyclic; g++) {
        for (int k = 0; k < finder->nimages && nclosed < MOST_CLOSED; k++, nclosed++) {
            struct search_group group = cyclic[g];
            if (!close_group(finder, &group, finder->images[k])) continue;
            keep(finder, &group);
            cyclic[g] = group;
        }
    }
}

static int find_link(const struct search_machine *machine, int from, int to)
{
    for (int l = 0; l < machine->nlinks; l++) {
        if (machine->links[l].from == from && machine->links[l].to == to) return l;
    }
    return -1;
}

static int find_kind(const struct search_goal *goal, const struct search_kind *kind,
                     const int *image)
{
    uint32_t to = 0;
    if (goal->exchanges) return 0;
    for (int r = 0; r < goal->nranks; r++)
        to |= (kind->to >> r & 1) << image[r];
    for (int k = 0; k < goal->nkinds; k++) {
        if (goal->kinds[k].from == image[kind->from] && goal->kinds[k].to == to) return k;
    }
    return -1;
}

int search_symmetry_find(const struct search_goal *goal, const struct search_machine *machine,
                         struct search_group *groups)
{
    struct finder finder = {.goal = goal,
                            .machine = machine,
                            .turns = goal->exchanges || !has_own_kinds(goal),
                            .groups = groups};
    struct search_group trivial = {.count = 1};
    int image[SEARCH_MOST_RANKS] = {0};
    for (int r = 0; r < machine->nranks; r++)
        trivial.images[0][r] = r;
    for (int l = 0; l < machine->nlinks; l++)
        finder.width[machine->links[l].from][machine->links[l].to] = machine->links[l].width;
    if (finder.turns) {
        list_images(&finder, image, 0);
        combine(&finder, &trivial);
        return finder.ngroups;
    }
    grow(&finder, &trivial, 1);
    groups[0] = finder.best;
    return finder.best.count > 1;
}

void search_symmetry_use(const struct search_goal *goal, const struct search_machine *machine,
                         const struct search_group *group, struct search_symmetry *symmetry)
{
    symmetry->group = *group;
    symmetry->turns = goal->exchanges || !has_own_kinds(goal);
    for (int e = 0; e < group->count; e++) {
        const int *image = group->images[e];
        for (int l = 0; l < machine->nlinks; l++) {
            const struct search_link *link = &machine->links[l];
            symmetry->links[e][l] = find_link(machine, image[link->from], image[link->to]);
        }
        for (int k = 0; k < goal->nkinds; k++)
            symmetry->kinds[e][k] = find_kind(goal, &goal->kinds[k], image);
    }
}
