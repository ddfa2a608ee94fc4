/* Scenes of what lies inside of something: parts of variables, kernels between nodes of graphs,
 * registered memory. */
#include "racy.h"

/* What compiled programs call; no header has them. */
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterVar(void **handle, char *host_var, char *device_address, const char *device_name,
                       int ext, size_t size, int constant, int global);

static char table[BYTES];

static void variable_part(bool sound) /* what an offset reaches is the variable as well */
{
    static char name[] = "table";
    void **module = __cudaRegisterFatBinary(NULL);
    __cudaRegisterVar(module, table, name, name, 0, BYTES, 0, 0);
    __cudaRegisterFatBinaryEnd(module);
    OK(cudaMemcpyToSymbolAsync(table, my.pinned, BYTES, 0, cudaMemcpyHostToDevice, my.a));
    order(my.a, my.b, sound);
    OK(cudaMemcpyFromSymbolAsync(my.x, table, BYTES / 2, BYTES / 4, cudaMemcpyDeviceToDevice,
                                 my.b));
}

const struct racy_scene racy_inside[] = {
    {"variable-part", variable_part, "race"},
};
const size_t racy_ninside = sizeof(racy_inside) / sizeof(racy_inside[0]);
