/* In the place of otf2.c where the headers of OTF2 were not there when this was built. */
#include "../tool.h"

bool trace_write_otf2(const struct timeline *run, const char *folder)
{
    (void)run, (void)folder;
    (void)fprintf(stderr,
                  "tutti trace: this command was built without OTF2: install "
                  "libopen-trace-format2-dev (Debian, Ubuntu) or OTF2 3 from score-p.org and "
                  "build Tutti again\n");
    return false;
}
