/* Functions of the driver interface by name and by the CUDA version that brought them. Rows of one
 * name stand newest first; the first that is not newer than what is asked for is the answer. */
#include "driver_find.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef void driver_function(void);

/* Addresses are all that matters here, so the types are not those of cuda.h. */
#pragma GCC visibility push(default)
extern driver_function cuCtxGetCurrent;
extern driver_function cuCtxGetDevice;
extern driver_function cuCtxPopCurrent_v2;
extern driver_function cuCtxPushCurrent_v2;
extern driver_function cuCtxSetCurrent;
extern driver_function cuCtxSynchronize;
extern driver_function cuDeviceCanAccessPeer;
extern driver_function cuDeviceGet;
extern driver_function cuDeviceGetAttribute;
extern driver_function cuDeviceGetByPCIBusId;
extern driver_function cuDeviceGetCount;
extern driver_function cuDeviceGetName;
extern driver_function cuDeviceGetPCIBusId;
extern driver_function cuDeviceGetUuid_v2;
extern driver_function cuDevicePrimaryCtxGetState;
extern driver_function cuDevicePrimaryCtxRelease_v2;
extern driver_function cuDevicePrimaryCtxRetain;
extern driver_function cuDeviceTotalMem_v2;
extern driver_function cuDriverGetVersion;
extern driver_function cuEventCreate;
extern driver_function cuEventDestroy_v2;
extern driver_function cuEventElapsedTime;
extern driver_function cuEventQuery;
extern driver_function cuEventRecord;
extern driver_function cuEventRecord_ptsz;
extern driver_function cuEventSynchronize;
extern driver_function cuFlushGPUDirectRDMAWrites;
extern driver_function cuFuncGetAttribute;
extern driver_function cuFuncGetModule;
extern driver_function cuFuncGetName;
extern driver_function cuFuncSetAttribute;
extern driver_function cuGetErrorName;
extern driver_function cuGetErrorString;
extern driver_function cuGetProcAddress;
extern driver_function cuGetProcAddress_v2;
extern driver_function cuInit;
extern driver_function cuKernelGetFunction;
extern driver_function cuKernelGetLibrary;
extern driver_function cuKernelGetName;
extern driver_function cuLaunchCooperativeKernel;
extern driver_function cuLaunchCooperativeKernel_ptsz;
extern driver_function cuLaunchHostFunc;
extern driver_function cuLaunchHostFunc_ptsz;
extern driver_function cuLaunchKernel;
extern driver_function cuLaunchKernelEx;
extern driver_function cuLaunchKernelEx_ptsz;
extern driver_function cuLaunchKernel_ptsz;
extern driver_function cuLibraryEnumerateKernels;
extern driver_function cuLibraryGetGlobal;
extern driver_function cuLibraryGetKernel;
extern driver_function cuLibraryGetKernelCount;
extern driver_function cuLibraryGetManaged;
extern driver_function cuLibraryGetModule;
extern driver_function cuLibraryLoadData;
extern driver_function cuLibraryLoadFromFile;
extern driver_function cuLibraryUnload;
extern driver_function cuLinkAddData_v2;
extern driver_function cuLinkAddFile_v2;
extern driver_function cuLinkComplete;
extern driver_function cuLinkCreate_v2;
extern driver_function cuLinkDestroy;
extern driver_function cuMemAddressFree;
extern driver_function cuMemAddressReserve;
extern driver_function cuMemAllocHost_v2;
extern driver_function cuMemAlloc_v2;
extern driver_function cuMemCreate;
extern driver_function cuMemExportToShareableHandle;
extern driver_function cuMemFreeHost;
extern driver_function cuMemFree_v2;
extern driver_function cuMemGetAccess;
extern driver_function cuMemGetAddressRange_v2;
extern driver_function cuMemGetAllocationGranularity;
extern driver_function cuMemGetAllocationPropertiesFromHandle;
extern driver_function cuMemGetHandleForAddressRange;
extern driver_function cuMemGetInfo_v2;
extern driver_function cuMemHostAlloc;
extern driver_function cuMemHostGetDevicePointer_v2;
extern driver_function cuMemHostRegister_v2;
extern driver_function cuMemHostUnregister;
extern driver_function cuMemImportFromShareableHandle;
extern driver_function cuMemMap;
extern driver_function cuMemRelease;
extern driver_function cuMemRetainAllocationHandle;
extern driver_function cuMemSetAccess;
extern driver_function cuMemUnmap;
extern driver_function cuMemcpy;
extern driver_function cuMemcpyAsync;
extern driver_function cuMemcpyAsync_ptsz;
extern driver_function cuMemcpyDtoDAsync_v2;
extern driver_function cuMemcpyDtoDAsync_v2_ptsz;
extern driver_function cuMemcpyDtoD_v2;
extern driver_function cuMemcpyDtoD_v2_ptds;
extern driver_function cuMemcpyDtoHAsync_v2;
extern driver_function cuMemcpyDtoHAsync_v2_ptsz;
extern driver_function cuMemcpyDtoH_v2;
extern driver_function cuMemcpyDtoH_v2_ptds;
extern driver_function cuMemcpyHtoDAsync_v2;
extern driver_function cuMemcpyHtoDAsync_v2_ptsz;
extern driver_function cuMemcpyHtoD_v2;
extern driver_function cuMemcpyHtoD_v2_ptds;
extern driver_function cuMemcpy_ptds;
extern driver_function cuMemsetD16Async;
extern driver_function cuMemsetD16Async_ptsz;
extern driver_function cuMemsetD16_v2;
extern driver_function cuMemsetD16_v2_ptds;
extern driver_function cuMemsetD2D8Async;
extern driver_function cuMemsetD2D8Async_ptsz;
extern driver_function cuMemsetD2D8_v2;
extern driver_function cuMemsetD2D8_v2_ptds;
extern driver_function cuMemsetD2D16Async;
extern driver_function cuMemsetD2D16Async_ptsz;
extern driver_function cuMemsetD2D16_v2;
extern driver_function cuMemsetD2D16_v2_ptds;
extern driver_function cuMemsetD2D32Async;
extern driver_function cuMemsetD2D32Async_ptsz;
extern driver_function cuMemsetD2D32_v2;
extern driver_function cuMemsetD2D32_v2_ptds;
extern driver_function cuMemsetD32Async;
extern driver_function cuMemsetD32Async_ptsz;
extern driver_function cuMemsetD32_v2;
extern driver_function cuMemsetD32_v2_ptds;
extern driver_function cuMemsetD8Async;
extern driver_function cuMemsetD8Async_ptsz;
extern driver_function cuMemsetD8_v2;
extern driver_function cuMemsetD8_v2_ptds;
extern driver_function cuModuleEnumerateFunctions;
extern driver_function cuModuleGetFunction;
extern driver_function cuModuleGetFunctionCount;
extern driver_function cuModuleGetGlobal_v2;
extern driver_function cuModuleGetLoadingMode;
extern driver_function cuModuleLoad;
extern driver_function cuModuleLoadData;
extern driver_function cuModuleLoadDataEx;
extern driver_function cuModuleLoadFatBinary;
extern driver_function cuModuleUnload;
extern driver_function cuMulticastCreate;
extern driver_function cuPointerGetAttribute;
extern driver_function cuPointerGetAttributes;
extern driver_function cuPointerSetAttribute;
extern driver_function cuStreamBatchMemOp_v2;
extern driver_function cuStreamBatchMemOp_v2_ptsz;
extern driver_function cuStreamCreate;
extern driver_function cuStreamCreateWithPriority;
extern driver_function cuStreamDestroy_v2;
extern driver_function cuStreamGetCaptureInfo;
extern driver_function cuStreamGetCaptureInfo_ptsz;
extern driver_function cuStreamGetCaptureInfo_v2;
extern driver_function cuStreamGetCaptureInfo_v2_ptsz;
extern driver_function cuStreamGetCaptureInfo_v3;
extern driver_function cuStreamGetCaptureInfo_v3_ptsz;
extern driver_function cuStreamIsCapturing;
extern driver_function cuStreamIsCapturing_ptsz;
extern driver_function cuStreamQuery;
extern driver_function cuStreamQuery_ptsz;
extern driver_function cuStreamSynchronize;
extern driver_function cuStreamSynchronize_ptsz;
extern driver_function cuStreamWaitEvent;
extern driver_function cuStreamWaitEvent_ptsz;
extern driver_function cuStreamWaitValue32_v2;
extern driver_function cuStreamWaitValue32_v2_ptsz;
extern driver_function cuStreamWaitValue64_v2;
extern driver_function cuStreamWaitValue64_v2_ptsz;
extern driver_function cuStreamWriteValue32_v2;
extern driver_function cuStreamWriteValue32_v2_ptsz;
extern driver_function cuStreamWriteValue64_v2;
extern driver_function cuStreamWriteValue64_v2_ptsz;
extern driver_function cuThreadExchangeStreamCaptureMode;
#pragma GCC visibility pop

struct driver_row {
    const char *name;
    int version;
    driver_function *legacy, *per_thread;
};

static const struct driver_row rows[] = {
    {"cuCtxGetCurrent", 2000, cuCtxGetCurrent, cuCtxGetCurrent},
    {"cuCtxGetDevice", 2000, cuCtxGetDevice, cuCtxGetDevice},
    {"cuCtxPopCurrent", 2000, cuCtxPopCurrent_v2, cuCtxPopCurrent_v2},
    {"cuCtxPushCurrent", 2000, cuCtxPushCurrent_v2, cuCtxPushCurrent_v2},
    {"cuCtxSetCurrent", 2000, cuCtxSetCurrent, cuCtxSetCurrent},
    {"cuCtxSynchronize", 2000, cuCtxSynchronize, cuCtxSynchronize},
    {"cuDeviceCanAccessPeer", 2000, cuDeviceCanAccessPeer, cuDeviceCanAccessPeer},
    {"cuDeviceGet", 2000, cuDeviceGet, cuDeviceGet},
    {"cuDeviceGetAttribute", 2000, cuDeviceGetAttribute, cuDeviceGetAttribute},
    {"cuDeviceGetByPCIBusId", 2000, cuDeviceGetByPCIBusId, cuDeviceGetByPCIBusId},
    {"cuDeviceGetCount", 2000, cuDeviceGetCount, cuDeviceGetCount},
    {"cuDeviceGetName", 2000, cuDeviceGetName, cuDeviceGetName},
    {"cuDeviceGetPCIBusId", 2000, cuDeviceGetPCIBusId, cuDeviceGetPCIBusId},
    {"cuDeviceGetUuid", 11040, cuDeviceGetUuid_v2, cuDeviceGetUuid_v2},
    {"cuDeviceGetUuid", 9020, cuDeviceGetUuid_v2, cuDeviceGetUuid_v2},
    {"cuDevicePrimaryCtxGetState", 2000, cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState},
    {"cuDevicePrimaryCtxRelease", 11000, cuDevicePrimaryCtxRelease_v2,
     cuDevicePrimaryCtxRelease_v2},
    {"cuDevicePrimaryCtxRelease", 7000, cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease_v2},
    {"cuDevicePrimaryCtxRetain", 2000, cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain},
    {"cuDeviceTotalMem", 2000, cuDeviceTotalMem_v2, cuDeviceTotalMem_v2},
    {"cuDriverGetVersion", 2000, cuDriverGetVersion, cuDriverGetVersion},
    {"cuEventCreate", 2000, cuEventCreate, cuEventCreate},
    {"cuEventDestroy", 2000, cuEventDestroy_v2, cuEventDestroy_v2},
    {"cuEventElapsedTime", 2000, cuEventElapsedTime, cuEventElapsedTime},
    {"cuEventQuery", 2000, cuEventQuery, cuEventQuery},
    {"cuEventRecord", 2000, cuEventRecord, cuEventRecord_ptsz},
    {"cuEventSynchronize", 2000, cuEventSynchronize, cuEventSynchronize},
    {"cuFlushGPUDirectRDMAWrites", 11030, cuFlushGPUDirectRDMAWrites, cuFlushGPUDirectRDMAWrites},
    {"cuFuncGetAttribute", 2020, cuFuncGetAttribute, cuFuncGetAttribute},
    {"cuFuncGetModule", 11000, cuFuncGetModule, cuFuncGetModule},
    {"cuFuncGetName", 12030, cuFuncGetName, cuFuncGetName},
    {"cuFuncSetAttribute", 9000, cuFuncSetAttribute, cuFuncSetAttribute},
    {"cuGetErrorName", 2000, cuGetErrorName, cuGetErrorName},
    {"cuGetErrorString", 2000, cuGetErrorString, cuGetErrorString},
    {"cuGetProcAddress", 12000, cuGetProcAddress_v2, cuGetProcAddress_v2},
    {"cuGetProcAddress", 11030, cuGetProcAddress, cuGetProcAddress},
    {"cuInit", 2000, cuInit, cuInit},
    {"cuKernelGetFunction", 12000, cuKernelGetFunction, cuKernelGetFunction},
    {"cuKernelGetLibrary", 12050, cuKernelGetLibrary, cuKernelGetLibrary},
    {"cuKernelGetName", 12030, cuKernelGetName, cuKernelGetName},
    {"cuLaunchCooperativeKernel", 9000, cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz},
    {"cuLaunchHostFunc", 10000, cuLaunchHostFunc, cuLaunchHostFunc_ptsz},
    {"cuLaunchKernel", 4000, cuLaunchKernel, cuLaunchKernel_ptsz},
    {"cuLaunchKernelEx", 11060, cuLaunchKernelEx, cuLaunchKernelEx_ptsz},
    {"cuLibraryEnumerateKernels", 12040, cuLibraryEnumerateKernels, cuLibraryEnumerateKernels},
    {"cuLibraryGetGlobal", 12000, cuLibraryGetGlobal, cuLibraryGetGlobal},
    {"cuLibraryGetKernel", 12000, cuLibraryGetKernel, cuLibraryGetKernel},
    {"cuLibraryGetKernelCount", 12040, cuLibraryGetKernelCount, cuLibraryGetKernelCount},
    {"cuLibraryGetManaged", 12000, cuLibraryGetManaged, cuLibraryGetManaged},
    {"cuLibraryGetModule", 12000, cuLibraryGetModule, cuLibraryGetModule},
    {"cuLibraryLoadData", 12000, cuLibraryLoadData, cuLibraryLoadData},
    {"cuLibraryLoadFromFile", 12000, cuLibraryLoadFromFile, cuLibraryLoadFromFile},
    {"cuLibraryUnload", 12000, cuLibraryUnload, cuLibraryUnload},
    {"cuLinkAddData", 5050, cuLinkAddData_v2, cuLinkAddData_v2},
    {"cuLinkAddFile", 5050, cuLinkAddFile_v2, cuLinkAddFile_v2},
    {"cuLinkComplete", 5050, cuLinkComplete, cuLinkComplete},
    {"cuLinkCreate", 5050, cuLinkCreate_v2, cuLinkCreate_v2},
    {"cuLinkDestroy", 5050, cuLinkDestroy, cuLinkDestroy},
    {"cuMemAddressFree", 10020, cuMemAddressFree, cuMemAddressFree},
    {"cuMemAddressReserve", 10020, cuMemAddressReserve, cuMemAddressReserve},
    {"cuMemAlloc", 2000, cuMemAlloc_v2, cuMemAlloc_v2},
    {"cuMemAllocHost", 2000, cuMemAllocHost_v2, cuMemAllocHost_v2},
    {"cuMemCreate", 10020, cuMemCreate, cuMemCreate},
    {"cuMemExportToShareableHandle", 10020, cuMemExportToShareableHandle,
     cuMemExportToShareableHandle},
    {"cuMemFree", 2000, cuMemFree_v2, cuMemFree_v2},
    {"cuMemFreeHost", 2000, cuMemFreeHost, cuMemFreeHost},
    {"cuMemGetAccess", 10020, cuMemGetAccess, cuMemGetAccess},
    {"cuMemGetAddressRange", 2000, cuMemGetAddressRange_v2, cuMemGetAddressRange_v2},
    {"cuMemGetAllocationGranularity", 10020, cuMemGetAllocationGranularity,
     cuMemGetAllocationGranularity},
    {"cuMemGetAllocationPropertiesFromHandle", 10020, cuMemGetAllocationPropertiesFromHandle,
     cuMemGetAllocationPropertiesFromHandle},
    {"cuMemGetHandleForAddressRange", 11070, cuMemGetHandleForAddressRange,
     cuMemGetHandleForAddressRange},
    {"cuMemGetInfo", 2000, cuMemGetInfo_v2, cuMemGetInfo_v2},
    {"cuMemHostAlloc", 2000, cuMemHostAlloc, cuMemHostAlloc},
    {"cuMemHostGetDevicePointer", 2000, cuMemHostGetDevicePointer_v2, cuMemHostGetDevicePointer_v2},
    {"cuMemHostRegister", 2000, cuMemHostRegister_v2, cuMemHostRegister_v2},
    {"cuMemHostUnregister", 2000, cuMemHostUnregister, cuMemHostUnregister},
    {"cuMemImportFromShareableHandle", 10020, cuMemImportFromShareableHandle,
     cuMemImportFromShareableHandle},
    {"cuMemMap", 10020, cuMemMap, cuMemMap},
    {"cuMemRelease", 10020, cuMemRelease, cuMemRelease},
    {"cuMemRetainAllocationHandle", 11000, cuMemRetainAllocationHandle,
     cuMemRetainAllocationHandle},
    {"cuMemSetAccess", 10020, cuMemSetAccess, cuMemSetAccess},
    {"cuMemUnmap", 10020, cuMemUnmap, cuMemUnmap},
    {"cuMemcpy", 2000, cuMemcpy, cuMemcpy_ptds},
    {"cuMemcpyAsync", 2000, cuMemcpyAsync, cuMemcpyAsync_ptsz},
    {"cuMemcpyDtoD", 2000, cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds},
    {"cuMemcpyDtoDAsync", 2000, cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz},
    {"cuMemcpyDtoH", 2000, cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds},
    {"cuMemcpyDtoHAsync", 2000, cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz},
    {"cuMemcpyHtoD", 2000, cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds},
    {"cuMemcpyHtoDAsync", 2000, cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz},
    {"cuMemsetD16", 2000, cuMemsetD16_v2, cuMemsetD16_v2_ptds},
    {"cuMemsetD16Async", 3020, cuMemsetD16Async, cuMemsetD16Async_ptsz},
    {"cuMemsetD2D8", 2000, cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds},
    {"cuMemsetD2D8Async", 3020, cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz},
    {"cuMemsetD2D16", 2000, cuMemsetD2D16_v2, cuMemsetD2D16_v2_ptds},
    {"cuMemsetD2D16Async", 3020, cuMemsetD2D16Async, cuMemsetD2D16Async_ptsz},
    {"cuMemsetD2D32", 2000, cuMemsetD2D32_v2, cuMemsetD2D32_v2_ptds},
    {"cuMemsetD2D32Async", 3020, cuMemsetD2D32Async, cuMemsetD2D32Async_ptsz},
    {"cuMemsetD32", 2000, cuMemsetD32_v2, cuMemsetD32_v2_ptds},
    {"cuMemsetD32Async", 2000, cuMemsetD32Async, cuMemsetD32Async_ptsz},
    {"cuMemsetD8", 2000, cuMemsetD8_v2, cuMemsetD8_v2_ptds},
    {"cuMemsetD8Async", 2000, cuMemsetD8Async, cuMemsetD8Async_ptsz},
    {"cuModuleEnumerateFunctions", 12040, cuModuleEnumerateFunctions, cuModuleEnumerateFunctions},
    {"cuModuleGetFunction", 2000, cuModuleGetFunction, cuModuleGetFunction},
    {"cuModuleGetFunctionCount", 12040, cuModuleGetFunctionCount, cuModuleGetFunctionCount},
    {"cuModuleGetGlobal", 3020, cuModuleGetGlobal_v2, cuModuleGetGlobal_v2},
    {"cuModuleGetLoadingMode", 11070, cuModuleGetLoadingMode, cuModuleGetLoadingMode},
    {"cuModuleLoad", 2000, cuModuleLoad, cuModuleLoad},
    {"cuModuleLoadData", 2000, cuModuleLoadData, cuModuleLoadData},
    {"cuModuleLoadDataEx", 2010, cuModuleLoadDataEx, cuModuleLoadDataEx},
    {"cuModuleLoadFatBinary", 2000, cuModuleLoadFatBinary, cuModuleLoadFatBinary},
    {"cuModuleUnload", 2000, cuModuleUnload, cuModuleUnload},
    {"cuMulticastCreate", 12010, cuMulticastCreate, cuMulticastCreate},
    {"cuPointerGetAttribute", 2000, cuPointerGetAttribute, cuPointerGetAttribute},
    {"cuPointerGetAttributes", 2000, cuPointerGetAttributes, cuPointerGetAttributes},
    {"cuPointerSetAttribute", 2000, cuPointerSetAttribute, cuPointerSetAttribute},
    {"cuStreamBatchMemOp", 11070, cuStreamBatchMemOp_v2, cuStreamBatchMemOp_v2_ptsz},
    {"cuStreamBatchMemOp", 8000, cuStreamBatchMemOp_v2, cuStreamBatchMemOp_v2_ptsz},
    {"cuStreamCreate", 2000, cuStreamCreate, cuStreamCreate},
    {"cuStreamCreateWithPriority", 2000, cuStreamCreateWithPriority, cuStreamCreateWithPriority},
    {"cuStreamDestroy", 2000, cuStreamDestroy_v2, cuStreamDestroy_v2},
    {"cuStreamGetCaptureInfo", 12030, cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz},
    {"cuStreamGetCaptureInfo", 11030, cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz},
    {"cuStreamGetCaptureInfo", 10010, cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz},
    {"cuStreamIsCapturing", 10000, cuStreamIsCapturing, cuStreamIsCapturing_ptsz},
    {"cuStreamQuery", 2000, cuStreamQuery, cuStreamQuery_ptsz},
    {"cuStreamSynchronize", 2000, cuStreamSynchronize, cuStreamSynchronize_ptsz},
    {"cuStreamWaitEvent", 2000, cuStreamWaitEvent, cuStreamWaitEvent_ptsz},
    {"cuStreamWaitValue32", 11070, cuStreamWaitValue32_v2, cuStreamWaitValue32_v2_ptsz},
    {"cuStreamWaitValue32", 8000, cuStreamWaitValue32_v2, cuStreamWaitValue32_v2_ptsz},
    {"cuStreamWaitValue64", 11070, cuStreamWaitValue64_v2, cuStreamWaitValue64_v2_ptsz},
    {"cuStreamWaitValue64", 9000, cuStreamWaitValue64_v2, cuStreamWaitValue64_v2_ptsz},
    {"cuStreamWriteValue32", 11070, cuStreamWriteValue32_v2, cuStreamWriteValue32_v2_ptsz},
    {"cuStreamWriteValue32", 8000, cuStreamWriteValue32_v2, cuStreamWriteValue32_v2_ptsz},
    {"cuStreamWriteValue64", 11070, cuStreamWriteValue64_v2, cuStreamWriteValue64_v2_ptsz},
    {"cuStreamWriteValue64", 9000, cuStreamWriteValue64_v2, cuStreamWriteValue64_v2_ptsz},
    {"cuThreadExchangeStreamCaptureMode", 10010, cuThreadExchangeStreamCaptureMode,
     cuThreadExchangeStreamCaptureMode},
};

enum tt_driver_found tt_driver_find(const char *name, int version, bool per_thread, void **function)
{
    bool known = false;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        known = true;
        if (version && rows[i].version > version) continue;
        driver_function *found = per_thread ? rows[i].per_thread : rows[i].legacy;
        memcpy(function, &found, sizeof(found));
        return TT_DRIVER_FOUND;
    }
    *function = NULL;
    return known ? TT_DRIVER_NEWER : TT_DRIVER_UNKNOWN;
}
