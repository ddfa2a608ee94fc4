/* The runtime's doors to the driver interface. Compiled twice: the default flavour of the answer is
 * that of the caller's default stream. */
#include "../shared/face.h"
#include "find.h"

#include "device/host/host_face.h"

static int find(const char *symbol, void **function, int version, unsigned long long flags,
                enum cudaDriverEntryPointQueryResult *status)
{
    const unsigned long long known = cudaEnableLegacyStream | cudaEnablePerThreadDefaultStream;
    if (!symbol || !*symbol || !function || (flags & ~known)) return cudaErrorInvalidValue;
    bool per_thread = (flags & cudaEnablePerThreadDefaultStream) != 0;
    if (!flags) per_thread = tt_face_stream(NULL) != NULL;
    tuttiHostDeviceCount(); /* what is found works without cuInit() */
    enum tt_driver_found found = tt_driver_find(symbol, version, per_thread, function);
    if (status) *status = (enum cudaDriverEntryPointQueryResult)found;
    return found == TT_DRIVER_FOUND || status ? cudaSuccess : cudaErrorSymbolNotFound;
}

/* The newest form that the runtime of the face's version may know. */
cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status)
{
    int version = 0;
    cudaRuntimeGetVersion(&version);
    return tt_face_done(find(symbol, function, version, flags, status));
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
                                             unsigned int version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *status)
{
    return tt_face_done(find(symbol, function, (int)version, flags, status));
}
