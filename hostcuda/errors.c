/* Result codes: the thread's last one, and what each is called. The table is sorted by number. */
#include "face.h"

struct error_text {
    int code;
    const char *name, *text;
};

static const struct error_text errors[] = {
    {0, "cudaSuccess", "no error"},
    {1, "cudaErrorInvalidValue", "an argument is out of its range"},
    {2, "cudaErrorMemoryAllocation", "out of memory"},
    {3, "cudaErrorInitializationError", "the host device could not be started"},
    {4, "cudaErrorCudartUnloading", "the runtime is being unloaded"},
    {5, "cudaErrorProfilerDisabled", "profiler disabled"},
    {6, "cudaErrorProfilerNotInitialized", "profiler not initialized"},
    {7, "cudaErrorProfilerAlreadyStarted", "profiler already started"},
    {8, "cudaErrorProfilerAlreadyStopped", "profiler already stopped"},
    {9, "cudaErrorInvalidConfiguration", "grid or block dimensions are not allowed"},
    {12, "cudaErrorInvalidPitchValue", "pitch smaller than the width of a row"},
    {13, "cudaErrorInvalidSymbol", "not a registered device variable"},
    {16, "cudaErrorInvalidHostPointer", "invalid host pointer"},
    {17, "cudaErrorInvalidDevicePointer", "invalid device pointer"},
    {18, "cudaErrorInvalidTexture", "invalid texture"},
    {19, "cudaErrorInvalidTextureBinding", "invalid texture binding"},
    {20, "cudaErrorInvalidChannelDescriptor", "invalid channel descriptor"},
    {21, "cudaErrorInvalidMemcpyDirection", "no such direction of a copy"},
    {22, "cudaErrorAddressOfConstant", "address of constant"},
    {23, "cudaErrorTextureFetchFailed", "texture fetch failed"},
    {24, "cudaErrorTextureNotBound", "texture not bound"},
    {25, "cudaErrorSynchronizationError", "synchronization error"},
    {26, "cudaErrorInvalidFilterSetting", "invalid filter setting"},
    {27, "cudaErrorInvalidNormSetting", "invalid norm setting"},
    {28, "cudaErrorMixedDeviceExecution", "mixed device execution"},
    {31, "cudaErrorNotYetImplemented", "not yet implemented"},
    {32, "cudaErrorMemoryValueTooLarge", "memory value too large"},
    {34, "cudaErrorStubLibrary", "stub library"},
    {35, "cudaErrorInsufficientDriver", "the driver is older than the runtime needs"},
    {36, "cudaErrorCallRequiresNewerDriver", "call requires newer driver"},
    {37, "cudaErrorInvalidSurface", "invalid surface"},
    {43, "cudaErrorDuplicateVariableName", "duplicate variable name"},
    {44, "cudaErrorDuplicateTextureName", "duplicate texture name"},
    {45, "cudaErrorDuplicateSurfaceName", "duplicate surface name"},
    {46, "cudaErrorDevicesUnavailable", "devices unavailable"},
    {49, "cudaErrorIncompatibleDriverContext", "incompatible driver context"},
    {52, "cudaErrorMissingConfiguration", "no launch configuration was pushed"},
    {53, "cudaErrorPriorLaunchFailure", "prior launch failure"},
    {65, "cudaErrorLaunchMaxDepthExceeded", "launch max depth exceeded"},
    {66, "cudaErrorLaunchFileScopedTex", "launch file scoped tex"},
    {67, "cudaErrorLaunchFileScopedSurf", "launch file scoped surf"},
    {68, "cudaErrorSyncDepthExceeded", "sync depth exceeded"},
    {69, "cudaErrorLaunchPendingCountExceeded", "launch pending count exceeded"},
    {98, "cudaErrorInvalidDeviceFunction",
     "not a registered kernel, or one without a host implementation"},
    {100, "cudaErrorNoDevice", "there is no device"},
    {101, "cudaErrorInvalidDevice", "no device has this number"},
    {102, "cudaErrorDeviceNotLicensed", "device not licensed"},
    {103, "cudaErrorSoftwareValidityNotEstablished", "software validity not established"},
    {127, "cudaErrorStartupFailure", "startup failure"},
    {200, "cudaErrorInvalidKernelImage", "invalid kernel image"},
    {201, "cudaErrorDeviceUninitialized", "the context is not valid here"},
    {205, "cudaErrorMapBufferObjectFailed", "map buffer object failed"},
    {206, "cudaErrorUnmapBufferObjectFailed", "unmap buffer object failed"},
    {207, "cudaErrorArrayIsMapped", "array is mapped"},
    {208, "cudaErrorAlreadyMapped", "already mapped"},
    {209, "cudaErrorNoKernelImageForDevice", "no code of the kernel for this device"},
    {210, "cudaErrorAlreadyAcquired", "already acquired"},
    {211, "cudaErrorNotMapped", "not mapped"},
    {212, "cudaErrorNotMappedAsArray", "not mapped as array"},
    {213, "cudaErrorNotMappedAsPointer", "not mapped as pointer"},
    {214, "cudaErrorECCUncorrectable", "ECC uncorrectable"},
    {215, "cudaErrorUnsupportedLimit", "no such limit"},
    {216, "cudaErrorDeviceAlreadyInUse", "device already in use"},
    {217, "cudaErrorPeerAccessUnsupported", "the devices cannot reach each other"},
    {218, "cudaErrorInvalidPtx", "invalid ptx"},
    {219, "cudaErrorInvalidGraphicsContext", "invalid graphics context"},
    {220, "cudaErrorNvlinkUncorrectable", "nvlink uncorrectable"},
    {221, "cudaErrorJitCompilerNotFound", "jit compiler not found"},
    {222, "cudaErrorUnsupportedPtxVersion", "unsupported ptx version"},
    {223, "cudaErrorJitCompilationDisabled", "jit compilation disabled"},
    {224, "cudaErrorUnsupportedExecAffinity", "unsupported exec affinity"},
    {225, "cudaErrorUnsupportedDevSideSync", "unsupported dev side sync"},
    {226, "cudaErrorContained", "contained"},
    {300, "cudaErrorInvalidSource", "invalid source"},
    {301, "cudaErrorFileNotFound", "file not found"},
    {302, "cudaErrorSharedObjectSymbolNotFound", "shared object symbol not found"},
    {303, "cudaErrorSharedObjectInitFailed", "shared object init failed"},
    {304, "cudaErrorOperatingSystem", "a call to the operating system failed"},
    {400, "cudaErrorInvalidResourceHandle", "the handle names nothing alive"},
    {401, "cudaErrorIllegalState", "not possible in the present state"},
    {402, "cudaErrorLossyQuery", "lossy query"},
    {500, "cudaErrorSymbolNotFound", "symbol not found"},
    {600, "cudaErrorNotReady", "work is not finished yet"},
    {700, "cudaErrorIllegalAddress", "access outside any allocation"},
    {701, "cudaErrorLaunchOutOfResources", "launch out of resources"},
    {702, "cudaErrorLaunchTimeout", "launch timeout"},
    {703, "cudaErrorLaunchIncompatibleTexturing", "launch incompatible texturing"},
    {704, "cudaErrorPeerAccessAlreadyEnabled", "access to the peer is enabled already"},
    {705, "cudaErrorPeerAccessNotEnabled", "access to the peer is not enabled"},
    {708, "cudaErrorSetOnActiveProcess", "set on active process"},
    {709, "cudaErrorContextIsDestroyed", "context is destroyed"},
    {710, "cudaErrorAssert", "an assertion in a kernel failed"},
    {711, "cudaErrorTooManyPeers", "too many peers"},
    {712, "cudaErrorHostMemoryAlreadyRegistered", "part of the range is registered already"},
    {713, "cudaErrorHostMemoryNotRegistered", "the address is not the start of a registered range"},
    {714, "cudaErrorHardwareStackError", "hardware stack error"},
    {715, "cudaErrorIllegalInstruction", "illegal instruction"},
    {716, "cudaErrorMisalignedAddress", "misaligned address"},
    {717, "cudaErrorInvalidAddressSpace", "invalid address space"},
    {718, "cudaErrorInvalidPc", "invalid pc"},
    {719, "cudaErrorLaunchFailure", "a kernel failed while it ran"},
    {720, "cudaErrorCooperativeLaunchTooLarge", "more blocks than can run at once"},
    {721, "cudaErrorTensorMemoryLeak", "tensor memory leak"},
    {800, "cudaErrorNotPermitted", "not permitted"},
    {801, "cudaErrorNotSupported", "not supported on the host device"},
    {802, "cudaErrorSystemNotReady", "system not ready"},
    {803, "cudaErrorSystemDriverMismatch", "system driver mismatch"},
    {804, "cudaErrorCompatNotSupportedOnDevice", "compat not supported on device"},
    {805, "cudaErrorMpsConnectionFailed", "mps connection failed"},
    {806, "cudaErrorMpsRpcFailure", "mps rpc failure"},
    {807, "cudaErrorMpsServerNotReady", "mps server not ready"},
    {808, "cudaErrorMpsMaxClientsReached", "mps max clients reached"},
    {809, "cudaErrorMpsMaxConnectionsReached", "mps max connections reached"},
    {810, "cudaErrorMpsClientTerminated", "mps client terminated"},
    {811, "cudaErrorCdpNotSupported", "cdp not supported"},
    {812, "cudaErrorCdpVersionMismatch", "cdp version mismatch"},
    {900, "cudaErrorStreamCaptureUnsupported", "not allowed while a stream is being captured"},
    {901, "cudaErrorStreamCaptureInvalidated", "an earlier error ended the capture"},
    {902, "cudaErrorStreamCaptureMerge", "two separate captures cannot become one"},
    {903, "cudaErrorStreamCaptureUnmatched", "the capture was begun on another stream"},
    {904, "cudaErrorStreamCaptureUnjoined", "a stream that joined the capture was not joined back"},
    {905, "cudaErrorStreamCaptureIsolation",
     "captured work cannot wait for work outside the capture"},
    {906, "cudaErrorStreamCaptureImplicit",
     "the legacy default stream would wait for a captured stream"},
    {907, "cudaErrorCapturedEvent", "the event was last recorded in a capture"},
    {908, "cudaErrorStreamCaptureWrongThread", "the capture was begun by another thread"},
    {909, "cudaErrorTimeout", "took too long"},
    {910, "cudaErrorGraphExecUpdateFailure", "the graph differs too much from the executable one"},
    {911, "cudaErrorExternalDevice", "external device"},
    {912, "cudaErrorInvalidClusterSize", "invalid cluster size"},
    {913, "cudaErrorFunctionNotLoaded", "function not loaded"},
    {914, "cudaErrorInvalidResourceType", "invalid resource type"},
    {915, "cudaErrorInvalidResourceConfiguration", "invalid resource configuration"},
    {999, "cudaErrorUnknown", "unknown error"},
    {10000, "cudaErrorApiFailureBase", "api failure base"},
};

static const struct error_text *find_error(int code)
{
    size_t low = 0, high = sizeof(errors) / sizeof(errors[0]);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (errors[middle].code == code) return &errors[middle];
        if (errors[middle].code < code) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

const char *tt_face_error_text(int code)
{
    const struct error_text *found = find_error(code);
    return found ? found->text : NULL;
}

const char *cudaGetErrorName(cudaError_t error)
{
    const struct error_text *found = find_error((int)error);
    return found ? found->name : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    const struct error_text *found = find_error((int)error);
    return found ? found->text : "unrecognized error code";
}

/* hot */
cudaError_t cudaGetLastError(void)
{
    return (cudaError_t)tuttiHostErrorGet();
}

cudaError_t cudaPeekAtLastError(void)
{
    return (cudaError_t)tuttiHostErrorPeek();
}
