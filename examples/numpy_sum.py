"""The sum of all ranks' numpy arrays, by ctypes alone:   tutti run -n 4 python3 numpy_sum.py"""
import ctypes, os
try:
    import numpy as np
except ImportError:
    raise SystemExit("numpy_sum.py: numpy is missing: apt install python3-numpy")

cuda, nccl = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libnccl.so.2")
UniqueId = type("UniqueId", (ctypes.Structure,), {"_fields_": [("internal", ctypes.c_char * 128)]})
FLOAT64, SUM, TO_DEVICE, TO_HOST = 8, 0, 1, 2
nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
nccl.ncclAllReduce.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_size_t, ctypes.c_int, ctypes.c_int] + [ctypes.c_void_p] * 2
cuda.cudaMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

def check(code):
    assert code == 0, f"error {code}"

rank, nranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
unique_id, comm, memory = UniqueId(), ctypes.c_void_p(), ctypes.c_void_p()
check(cuda.cudaSetDevice(int(os.environ.get("LOCAL_RANK", 0))))
check(nccl.ncclGetUniqueId(ctypes.byref(unique_id)))
check(nccl.ncclCommInitRank(ctypes.byref(comm), nranks, unique_id, rank))
numbers = np.linspace(0.0, 1.0, 1000) + rank
check(cuda.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(numbers.nbytes)))
check(cuda.cudaMemcpy(memory, numbers.ctypes.data, numbers.nbytes, TO_DEVICE))
check(nccl.ncclAllReduce(memory, memory, numbers.size, FLOAT64, SUM, comm, None))
check(cuda.cudaMemcpy(numbers.ctypes.data, memory, numbers.nbytes, TO_HOST))
want = nranks * np.linspace(0.0, 1.0, 1000) + nranks * (nranks - 1) / 2
print(f"rank {rank} of {nranks}: {np.count_nonzero(~np.isclose(numbers, want))} wrong")
check(cuda.cudaFree(memory))
check(nccl.ncclCommDestroy(comm))
