/* `tutti topo show --svg`: the picture of a machine, and below it who reaches whom how. */
#include "../machine.h"
#include "paths_svg.h"
#include "picture.h"

enum { ROWS_LEFT = 110, MOST_HOSTS = 2 }; /* hosts that are drawn in full, side by side */

bool topo_is_rack(const struct box *box)
{
    int hosts = box_hosts(box);
    for (int host = 1; host < hosts; host++) {
        if (!box_is_copy(box->machine, 0, host)) return false;
    }
    return hosts > MOST_HOSTS;
}

bool topo_show_svg(const struct box *box, const char *title, FILE *out)
{
    struct picture picture;
    if (topo_is_rack(box)) return topo_rack_svg(box, title, out);
    bool ready = picture_init(&picture, box, out, ROWS_LEFT);
    if (ready) {
        double more = paths_svg_height(&picture);
        picture_begin(&picture, title, NULL, picture.y_below + more + PICTURE_LEGEND);
        picture_machine(&picture);
        paths_svg_put(&picture, PICTURE_MARGIN, picture.y_below);
        picture_legend(&picture, picture.y_below + more);
        picture_end(&picture);
    } else {
        (void)fprintf(stderr, "tutti topo: out of memory for a picture\n");
    }
    picture_fini(&picture);
    return ready;
}
