/* What an address is, wherever it lies: in the range, mapped in parts, of another process, or
 * registered. */
#include "device/host/host.h"
#include "device/host/host_face.h"
#include "device/host/host_vmm.h"
#include "device/host/process/state.h"

/* From the mapping around ptr to the last one that follows without a gap. */
static bool find_parts(const void *ptr, struct tt_pointer *pointer_out)
{
    struct tt_mapped mapped;
    if (!tuttiHostMapped(ptr, &mapped)) return false;
    *pointer_out = (struct tt_pointer){mapped.info.on_host ? TT_MEMORY_PINNED : TT_MEMORY_DEVICE,
                                       mapped.info.device, mapped.base, mapped.bytes};
    while (tuttiHostMapped(pointer_out->base + pointer_out->bytes, &mapped)) {
        pointer_out->bytes += mapped.bytes;
    }
    return true;
}

int tuttiHostLocate(const void *ptr, struct tt_pointer *pointer_out)
{
    struct tt_registered known;
    int rc = tuttiHostPointer(ptr, pointer_out);
    if (rc || pointer_out->kind != TT_MEMORY_FOREIGN) return rc;
    if (tuttiHostIpcMapped(ptr, pointer_out) || find_parts(ptr, pointer_out)) return TT_HOST_OK;
    if (tuttiHostRegistered(ptr, &known))
        *pointer_out = (struct tt_pointer){TT_MEMORY_PINNED, known.device, known.base, known.bytes};
    return TT_HOST_OK;
}
