/* Flag words and small constants that CUDA defines as macros. */
#ifndef TUTTI_HOSTCUDA_FLAGS_H_
#define TUTTI_HOSTCUDA_FLAGS_H_

/* stream flags */
#define cudaStreamDefault 0
#define cudaStreamNonBlocking 1

/* event flags */
#define cudaEventDefault 0
#define cudaEventBlockingSync 1
#define cudaEventDisableTiming 2
#define cudaEventInterprocess 4

/* event record flags */
#define cudaEventRecordDefault 0
#define cudaEventRecordExternal 1

/* event wait flags */
#define cudaEventWaitDefault 0
#define cudaEventWaitExternal 1

/* host alloc flags */
#define cudaHostAllocDefault 0
#define cudaHostAllocPortable 1
#define cudaHostAllocMapped 2
#define cudaHostAllocWriteCombined 4

/* host register flags */
#define cudaHostRegisterDefault 0
#define cudaHostRegisterPortable 1
#define cudaHostRegisterMapped 2
#define cudaHostRegisterIoMemory 4
#define cudaHostRegisterReadOnly 8

/* peer access flags */
#define cudaPeerAccessDefault 0

/* IPC flags */
#define cudaIpcMemLazyEnablePeerAccess 1
#define CUDA_IPC_HANDLE_SIZE 64

/* managed attach flags */
#define cudaMemAttachGlobal 1
#define cudaMemAttachHost 2
#define cudaMemAttachSingle 4

/* device flags */
#define cudaDeviceScheduleAuto 0
#define cudaDeviceScheduleSpin 1
#define cudaDeviceScheduleYield 2
#define cudaDeviceScheduleBlockingSync 4
#define cudaDeviceBlockingSync 4
#define cudaDeviceScheduleMask 7
#define cudaDeviceMapHost 8
#define cudaDeviceLmemResizeToMax 16
#define cudaDeviceSyncMemops 128
#define cudaDeviceMask 255
#define cudaInitDeviceFlagsAreValid 1

/* device ids */
#define cudaCpuDeviceId ((int)-1)
#define cudaInvalidDeviceId ((int)-2)

/* occupancy flags */
#define cudaOccupancyDefault 0
#define cudaOccupancyDisableCachingOverride 1

/* graph kernel node ports */
#define cudaGraphKernelNodePortDefault 0
#define cudaGraphKernelNodePortProgrammatic 1
#define cudaGraphKernelNodePortLaunchCompletion 2

/* mem pool usage flags */
#define cudaMemPoolCreateUsageHwDecompress 2

#endif
