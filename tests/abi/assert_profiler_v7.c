/* Facts, made from tables: compile-time checks of plugin kind profiler, interface v7.
 * Header under test: ABI_HEADER (define it as a quoted include name to override).
 */

#ifndef ABI_HEADER
#define ABI_HEADER "nccl/profiler.h"
#endif
#include "checks.h"

#include ABI_HEADER

/* ncclProfilerEventDescr_v7_t */
#ifndef ABI_SKIP_ncclProfilerEventDescr_v7_t
ABI_SIZE(ncclProfilerEventDescr_v7_t, 136);
ABI_ALIGN(ncclProfilerEventDescr_v7_t, 8);
ABI_AT(ncclProfilerEventDescr_v7_t, type, 0, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, type, uint64_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, parentObj, 8, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, parentObj, void * *);
ABI_AT(ncclProfilerEventDescr_v7_t, rank, 16, 4);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, rank, int *);
ABI_AT(ncclProfilerEventDescr_v7_t, groupApi, 24, 8);
ABI_AT(ncclProfilerEventDescr_v7_t, groupApi.graphCaptured, 24, 1);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, groupApi.graphCaptured, bool *);
ABI_AT(ncclProfilerEventDescr_v7_t, groupApi.groupDepth, 28, 4);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, groupApi.groupDepth, int *);
ABI_AT(ncclProfilerEventDescr_v7_t, collApi, 24, 56);
ABI_AT(ncclProfilerEventDescr_v7_t, collApi.func, 24, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, collApi.func, const char * *);
ABI_AT(ncclProfilerEventDescr_v7_t, collApi.count, 32, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, collApi.count, size_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, collApi.datatype, 40, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, collApi.datatype, const char * *);
ABI_AT(ncclProfilerEventDescr_v7_t, collApi.root, 48, 4);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, collApi.root, int *);
ABI_AT(ncclProfilerEventDescr_v7_t, collApi.stream, 56, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, collApi.stream, void * *);
ABI_AT(ncclProfilerEventDescr_v7_t, collApi.graphCaptured, 64, 1);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, collApi.graphCaptured, bool *);
ABI_AT(ncclProfilerEventDescr_v7_t, collApi.userTag, 72, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, collApi.userTag, uint64_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, p2pApi, 24, 48);
ABI_AT(ncclProfilerEventDescr_v7_t, p2pApi.func, 24, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, p2pApi.func, const char * *);
ABI_AT(ncclProfilerEventDescr_v7_t, p2pApi.count, 32, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, p2pApi.count, size_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, p2pApi.datatype, 40, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, p2pApi.datatype, const char * *);
ABI_AT(ncclProfilerEventDescr_v7_t, p2pApi.stream, 48, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, p2pApi.stream, void * *);
ABI_AT(ncclProfilerEventDescr_v7_t, p2pApi.graphCaptured, 56, 1);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, p2pApi.graphCaptured, bool *);
ABI_AT(ncclProfilerEventDescr_v7_t, p2pApi.userTag, 64, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, p2pApi.userTag, uint64_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, kernelLaunch, 24, 8);
ABI_AT(ncclProfilerEventDescr_v7_t, kernelLaunch.stream, 24, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, kernelLaunch.stream, void * *);
ABI_AT(ncclProfilerEventDescr_v7_t, coll, 24, 112);
ABI_AT(ncclProfilerEventDescr_v7_t, coll.seqNumber, 24, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, coll.seqNumber, uint64_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, coll.func, 32, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, coll.func, const char * *);
ABI_AT(ncclProfilerEventDescr_v7_t, coll.sendBuff, 40, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, coll.sendBuff, const void * *);
ABI_AT(ncclProfilerEventDescr_v7_t, coll.recvBuff, 48, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, coll.recvBuff, void * *);
ABI_AT(ncclProfilerEventDescr_v7_t, coll.count, 56, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, coll.count, size_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, coll.root, 64, 4);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, coll.root, int *);
ABI_AT(ncclProfilerEventDescr_v7_t, coll.datatype, 72, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, coll.datatype, const char * *);
ABI_AT(ncclProfilerEventDescr_v7_t, coll.nChannels, 80, 1);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, coll.nChannels, uint8_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, coll.nWarps, 81, 1);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, coll.nWarps, uint8_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, coll.algo, 88, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, coll.algo, const char * *);
ABI_AT(ncclProfilerEventDescr_v7_t, coll.proto, 96, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, coll.proto, const char * *);
ABI_AT(ncclProfilerEventDescr_v7_t, coll.parentGroup, 104, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, coll.parentGroup, void * *);
ABI_AT(ncclProfilerEventDescr_v7_t, coll.kernelVariant, 112, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, coll.kernelVariant, const char * *);
ABI_AT(ncclProfilerEventDescr_v7_t, coll.isSymColl, 120, 1);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, coll.isSymColl, bool *);
ABI_AT(ncclProfilerEventDescr_v7_t, coll.userTag, 128, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, coll.userTag, uint64_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, p2p, 24, 56);
ABI_AT(ncclProfilerEventDescr_v7_t, p2p.func, 24, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, p2p.func, const char * *);
ABI_AT(ncclProfilerEventDescr_v7_t, p2p.buff, 32, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, p2p.buff, void * *);
ABI_AT(ncclProfilerEventDescr_v7_t, p2p.datatype, 40, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, p2p.datatype, const char * *);
ABI_AT(ncclProfilerEventDescr_v7_t, p2p.count, 48, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, p2p.count, size_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, p2p.peer, 56, 4);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, p2p.peer, int *);
ABI_AT(ncclProfilerEventDescr_v7_t, p2p.nChannels, 60, 1);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, p2p.nChannels, uint8_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, p2p.parentGroup, 64, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, p2p.parentGroup, void * *);
ABI_AT(ncclProfilerEventDescr_v7_t, p2p.userTag, 72, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, p2p.userTag, uint64_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, proxyOp, 24, 24);
ABI_AT(ncclProfilerEventDescr_v7_t, proxyOp.pid, 24, 4);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, proxyOp.pid, pid_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, proxyOp.channelId, 28, 1);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, proxyOp.channelId, uint8_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, proxyOp.peer, 32, 4);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, proxyOp.peer, int *);
ABI_AT(ncclProfilerEventDescr_v7_t, proxyOp.nSteps, 36, 4);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, proxyOp.nSteps, int *);
ABI_AT(ncclProfilerEventDescr_v7_t, proxyOp.chunkSize, 40, 4);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, proxyOp.chunkSize, int *);
ABI_AT(ncclProfilerEventDescr_v7_t, proxyOp.isSend, 44, 4);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, proxyOp.isSend, int *);
ABI_AT(ncclProfilerEventDescr_v7_t, proxyStep, 24, 4);
ABI_AT(ncclProfilerEventDescr_v7_t, proxyStep.step, 24, 4);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, proxyStep.step, int *);
ABI_AT(ncclProfilerEventDescr_v7_t, kernelCh, 24, 16);
ABI_AT(ncclProfilerEventDescr_v7_t, kernelCh.channelId, 24, 1);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, kernelCh.channelId, uint8_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, kernelCh.pTimer, 32, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, kernelCh.pTimer, uint64_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, netPlugin, 24, 16);
ABI_AT(ncclProfilerEventDescr_v7_t, netPlugin.id, 24, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, netPlugin.id, int64_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, netPlugin.data, 32, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, netPlugin.data, void * *);
ABI_AT(ncclProfilerEventDescr_v7_t, ceColl, 24, 96);
ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.seqNumber, 24, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, ceColl.seqNumber, uint64_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.func, 32, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, ceColl.func, const char * *);
ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.sendBuff, 40, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, ceColl.sendBuff, const void * *);
ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.recvBuff, 48, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, ceColl.recvBuff, void * *);
ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.count, 56, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, ceColl.count, size_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.root, 64, 4);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, ceColl.root, int *);
ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.datatype, 72, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, ceColl.datatype, const char * *);
ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.syncStrategy, 80, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, ceColl.syncStrategy, const char * *);
ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.intraBatchSync, 88, 1);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, ceColl.intraBatchSync, bool *);
ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.batchSize, 92, 4);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, ceColl.batchSize, uint32_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.numBatches, 96, 4);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, ceColl.numBatches, uint32_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.ceSeqNum, 100, 4);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, ceColl.ceSeqNum, uint32_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.stream, 104, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, ceColl.stream, void * *);
ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.userTag, 112, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, ceColl.userTag, uint64_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, ceCollSync, 24, 8);
ABI_AT(ncclProfilerEventDescr_v7_t, ceCollSync.isComplete, 24, 1);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, ceCollSync.isComplete, bool *);
ABI_AT(ncclProfilerEventDescr_v7_t, ceCollSync.nRanks, 28, 4);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, ceCollSync.nRanks, int *);
ABI_AT(ncclProfilerEventDescr_v7_t, ceCollBatch, 24, 24);
ABI_AT(ncclProfilerEventDescr_v7_t, ceCollBatch.numOps, 24, 4);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, ceCollBatch.numOps, int *);
ABI_AT(ncclProfilerEventDescr_v7_t, ceCollBatch.totalBytes, 32, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, ceCollBatch.totalBytes, size_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, ceCollBatch.useIntraSync, 40, 1);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, ceCollBatch.useIntraSync, bool *);
ABI_AT(ncclProfilerEventDescr_v7_t, kernelPhase, 24, 24);
ABI_AT(ncclProfilerEventDescr_v7_t, kernelPhase.channelId, 24, 1);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, kernelPhase.channelId, uint8_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, kernelPhase.phaseId, 25, 1);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, kernelPhase.phaseId, uint8_t *);
ABI_AT(ncclProfilerEventDescr_v7_t, kernelPhase.phaseName, 32, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, kernelPhase.phaseName, const char * *);
ABI_AT(ncclProfilerEventDescr_v7_t, kernelPhase.pTimer, 40, 8);
ABI_FIELD_TYPE(ncclProfilerEventDescr_v7_t, kernelPhase.pTimer, uint64_t *);
#endif

/* ncclProfilerEventStateArgs_v7_t */
#ifndef ABI_SKIP_ncclProfilerEventStateArgs_v7_t
ABI_SIZE(ncclProfilerEventStateArgs_v7_t, 8);
ABI_ALIGN(ncclProfilerEventStateArgs_v7_t, 8);
ABI_AT(ncclProfilerEventStateArgs_v7_t, proxyStep, 0, 8);
ABI_AT(ncclProfilerEventStateArgs_v7_t, proxyStep.transSize, 0, 8);
ABI_FIELD_TYPE(ncclProfilerEventStateArgs_v7_t, proxyStep.transSize, size_t *);
ABI_AT(ncclProfilerEventStateArgs_v7_t, proxyCtrl, 0, 4);
ABI_AT(ncclProfilerEventStateArgs_v7_t, proxyCtrl.appendedProxyOps, 0, 4);
ABI_FIELD_TYPE(ncclProfilerEventStateArgs_v7_t, proxyCtrl.appendedProxyOps, int *);
ABI_AT(ncclProfilerEventStateArgs_v7_t, netPlugin, 0, 8);
ABI_AT(ncclProfilerEventStateArgs_v7_t, netPlugin.data, 0, 8);
ABI_FIELD_TYPE(ncclProfilerEventStateArgs_v7_t, netPlugin.data, void * *);
ABI_AT(ncclProfilerEventStateArgs_v7_t, kernelCh, 0, 8);
ABI_AT(ncclProfilerEventStateArgs_v7_t, kernelCh.pTimer, 0, 8);
ABI_FIELD_TYPE(ncclProfilerEventStateArgs_v7_t, kernelCh.pTimer, uint64_t *);
#endif

/* ncclProfiler_v7_t */
#ifndef ABI_SKIP_ncclProfiler_v7_t
ABI_SIZE(ncclProfiler_v7_t, 48);
ABI_ALIGN(ncclProfiler_v7_t, 8);
ABI_AT(ncclProfiler_v7_t, name, 0, 8);
ABI_FIELD_TYPE(ncclProfiler_v7_t, name, const char * *);
ABI_AT(ncclProfiler_v7_t, init, 8, 8);
ABI_FIELD_TYPE(ncclProfiler_v7_t, init, ncclResult_t (**)(void **, uint64_t, int *, const char *, int, int, int, ncclDebugLogger_t));
ABI_AT(ncclProfiler_v7_t, startEvent, 16, 8);
ABI_FIELD_TYPE(ncclProfiler_v7_t, startEvent, ncclResult_t (**)(void *, void **, ncclProfilerEventDescr_v7_t *));
ABI_AT(ncclProfiler_v7_t, stopEvent, 24, 8);
ABI_FIELD_TYPE(ncclProfiler_v7_t, stopEvent, ncclResult_t (**)(void *));
ABI_AT(ncclProfiler_v7_t, recordEventState, 32, 8);
ABI_FIELD_TYPE(ncclProfiler_v7_t, recordEventState, ncclResult_t (**)(void *, ncclProfilerEventState_v7_t, ncclProfilerEventStateArgs_v7_t *));
ABI_AT(ncclProfiler_v7_t, finalize, 40, 8);
ABI_FIELD_TYPE(ncclProfiler_v7_t, finalize, ncclResult_t (**)(void *));
#endif
