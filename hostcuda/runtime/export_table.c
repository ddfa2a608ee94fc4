/* Private tables of NVIDIA's runtime: there are none. */
#include "../shared/face.h"

#include "device/host/host_face.h"

cudaError_t cudaGetExportTable(const void **table, const cudaUUID_t *id)
{
    if (!table || !id) return tt_face_done(cudaErrorInvalidValue);
    *table = NULL;
    return tt_face_done(tuttiHostUnsupported("cudaGetExportTable"));
}
