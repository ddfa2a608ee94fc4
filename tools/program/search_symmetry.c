/* Symmetries of a machine: a group of ways to exchange its ranks after which the links are the
 * same.
 *
 * A schedule that looks the same after each of them is given by those of a few chunks: on a ring
 * all ranks do what rank 0 does, turned. Such schedules are fewer, and their formula is shorter by
 * the size of the group, so they are looked for first; that there is none of them says nothing of
 * others. Of a group only the identity may leave a rank in its place: then each chunk comes from
 * one other chunk in one way. */
#include "search.h"

#include <string.h>

enum { MOST_TRIED = 200000 }; /* ranks that are placed; a machine like any other needs hundreds */

struct finder {
    const struct search_machine *machine;
    int width[SEARCH_MOST_RANKS][SEARCH_MOST_RANKS];
    struct search_group best;
    int ntried;
};

static int compare(const int *a, const int *b, int nranks)
{
    return memcmp(a, b, (size_t)nranks * sizeof(int));
}

/* Add `image` and all that follows from it. False: a rank would stay in its place, or the group has
 * more elements than ranks. */
static bool close_group(struct search_group *group, const int *image, int nranks)
{
    memcpy(group->images[group->count++], image, (size_t)nranks * sizeof(int));
    for (int k = 0; k < group->count * group->count; k++) {
        const int *first = group->images[k % group->count], *then = group->images[k / group->count];
        int both[SEARCH_MOST_RANKS];
        bool known = false;
        for (int r = 0; r < nranks; r++)
            both[r] = then[first[r]];
        for (int e = 0; e < group->count && !known; e++)
            known = compare(group->images[e], both, nranks) == 0;
        if (known) continue;
        for (int r = 0; r < nranks; r++) {
            if (both[r] == r) return false;
        }
        if (group->count == nranks) return false;
        memcpy(group->images[group->count++], both, sizeof(both));
        k = -1; /* all pairs again */
    }
    return true;
}

static bool fits(const struct finder *finder, const int *image, int rank)
{
    bool fit = image[rank] != rank;
    for (int r = 0; r < rank && fit; r++) {
        fit = image[r] != image[rank] &&
              finder->width[r][rank] == finder->width[image[r]][image[rank]] &&
              finder->width[rank][r] == finder->width[image[rank]][image[r]];
    }
    return fit;
}

static void grow(struct finder *finder, const struct search_group *group, int first);

/* Place `rank` and those after it; each whole way is tried as one more element of the group. */
static void place(struct finder *finder, const struct search_group *group, int *image, int rank)
{
    int nranks = finder->machine->nranks;
    if (rank == nranks) {
        struct search_group larger = *group;
        if (close_group(&larger, image, nranks)) grow(finder, &larger, image[0] + 1);
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
    for (int r = 0; r < goal->nranks; r++)
        to |= (kind->to >> r & 1) << image[r];
    for (int k = 0; k < goal->nkinds; k++) {
        if (goal->kinds[k].from == image[kind->from] && goal->kinds[k].to == to) return k;
    }
    return -1;
}

/* What each element does to kinds and links. False: some kind becomes none. */
static bool fill_images(const struct search_goal *goal, const struct search_machine *machine,
                        struct search_symmetry *symmetry)
{
    bool found = true;
    for (int e = 0; e < symmetry->group.count; e++) {
        const int *image = symmetry->group.images[e];
        for (int l = 0; l < machine->nlinks; l++) {
            const struct search_link *link = &machine->links[l];
            symmetry->links[e][l] = find_link(machine, image[link->from], image[link->to]);
            found = found && symmetry->links[e][l] >= 0;
        }
        for (int k = 0; k < goal->nkinds; k++) {
            symmetry->kinds[e][k] = find_kind(goal, &goal->kinds[k], image);
            found = found && symmetry->kinds[e][k] >= 0;
        }
    }
    return found;
}

bool search_symmetry_find(const struct search_goal *goal, const struct search_machine *machine,
                          struct search_symmetry *symmetry)
{
    struct finder finder = {.machine = machine};
    struct search_group trivial = {.count = 1};
    for (int r = 0; r < machine->nranks; r++)
        trivial.images[0][r] = r;
    for (int l = 0; l < machine->nlinks; l++)
        finder.width[machine->links[l].from][machine->links[l].to] = machine->links[l].width;
    grow(&finder, &trivial, 1);
    symmetry->group = finder.best;
    return finder.best.count > 1 && fill_images(goal, machine, symmetry);
}
