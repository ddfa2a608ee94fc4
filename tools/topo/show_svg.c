/* `tutti topo show --svg`: the picture of a machine. */
#include "machine.h"
#include "picture.h"

static const char legend[] = "Numbers are GB/s in one direction. Grey: PCI; green: NVLink; "
                             "purple: chip to chip; blue: between CPUs.";

bool topo_show_svg(const struct box *box, const char *title)
{
    struct picture picture;
    bool ready = picture_init(&picture, box, stdout);
    if (ready) {
        double height = picture.y_below + 40;
        const struct picture_text where = {
            .x = 24, .y = height - 18, .size = 11, .anchor = "start", .colour = "#6b7280"};
        picture_begin(&picture, title, height);
        picture_machine(&picture);
        picture_print(&picture, &where, "%s", legend);
        picture_end(&picture);
    } else {
        (void)fprintf(stderr, "tutti topo: out of memory for a picture\n");
    }
    picture_fini(&picture);
    return ready;
}
