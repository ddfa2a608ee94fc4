/* `tutti version`: ours, and the interfaces that we speak. */
#include "tutti.h"

#include "nccl.h"

#include <stdio.h>
#include <string.h>

int cmd_version(int argc, char **argv)
{
    bool json = argc > 1 && !strcmp(argv[1], "--json");
    if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        printf("usage: tutti version [--json]\n\nexample: tutti version --json\n");
        return 0;
    }
    if (argc > 1 && !json) {
        const struct tutti_words words = {"--json,--help"};
        return tutti_unknown("version", argv[1][0] == '-' ? "option" : "argument", argv[1], &words);
    }
    const char *fmt = json ? "{\"tutti\": \"%s\", \"nccl\": \"%d.%d.%d\", \"nccl_code\": %d, "
                             "\"cuda_runtime\": %d}\n"
                           : "Tutti %s\nNCCL interface %d.%d.%d (%d)\nCUDA runtime interface %d\n";
    printf(fmt, TUTTI_VERSION, NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH, NCCL_VERSION_CODE,
           CUDART_VERSION);
    return 0;
}
