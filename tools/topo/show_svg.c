/* `tutti topo show --svg`: the picture of a machine. */
#include "machine.h"
#include "picture.h"

bool topo_show_svg(const struct box *box, const char *title)
{
    struct picture picture;
    bool ready = picture_init(&picture, box, stdout, PICTURE_MARGIN);
    if (ready) {
        picture_begin(&picture, title, NULL, picture.y_below + PICTURE_LEGEND);
        picture_machine(&picture);
        picture_legend(&picture, picture.y_below);
        picture_end(&picture);
    } else {
        (void)fprintf(stderr, "tutti topo: out of memory for a picture\n");
    }
    picture_fini(&picture);
    return ready;
}
