/* `tutti version`: ours, and the interfaces that we speak. */
#include "tutti.h"

#include "nccl.h"

#include <stdio.h>
#include <string.h>

int cmd_version(int argc, char **argv)
{
    bool json = argc > 1 && !strcmp(argv[1], "--json");
    if (argc > 1 && !json) {
        bool asked = !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");
        FILE *out = asked ? stdout : stderr;
        fprintf(out, "usage: tutti version [--json]\n\nexample: tutti version --json\n");
        return asked ? 0 : 2;
    }
    const char *fmt = json ? "{\"tutti\": \"%s\", \"nccl\": \"%d.%d.%d\", \"nccl_code\": %d, "
                             "\"cuda_runtime\": %d}\n"
                           : "Tutti %s\nNCCL interface %d.%d.%d (%d)\nCUDA runtime interface %d\n";
    printf(fmt, TUTTI_VERSION, NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH, NCCL_VERSION_CODE,
           CUDART_VERSION);
    return 0;
}
