// One process drives all devices, in C++: a communicator and a stream per device, calls in a group.
//   TUTTI_DEVICES=4 tutti run ./devices
#include "check.h"

#include <vector>

struct Device {
    ncclComm_t comm;
    cudaStream_t stream;
    double *memory;
};

int main()
{
    const size_t count = 100000;
    int ndevices = 0;
    CUDA(cudaGetDeviceCount(&ndevices));
    std::vector<ncclComm_t> comms(ndevices);
    std::vector<Device> devices(ndevices);
    NCCL(ncclCommInitAll(comms.data(), ndevices, nullptr));

    for (int d = 0; d < ndevices; d++) {
        std::vector<double> numbers(count, d + 1.0);
        devices[d].comm = comms[d];
        CUDA(cudaSetDevice(d));
        CUDA(cudaStreamCreate(&devices[d].stream));
        CUDA(cudaMalloc((void **)&devices[d].memory, count * sizeof(double)));
        CUDA(cudaMemcpy(devices[d].memory, numbers.data(), count * sizeof(double),
                        cudaMemcpyHostToDevice));
    }

    NCCL(ncclGroupStart()); // one thread calls for all: without a group the first call would wait
    for (Device &one : devices) {
        NCCL(ncclAllReduce(one.memory, one.memory, count, ncclDouble, ncclMax, one.comm,
                           one.stream));
    }
    NCCL(ncclGroupEnd());

    int wrong = 0;
    for (int d = 0; d < ndevices; d++) {
        std::vector<double> numbers(count);
        CUDA(cudaSetDevice(d));
        CUDA(cudaStreamSynchronize(devices[d].stream));
        CUDA(cudaMemcpy(numbers.data(), devices[d].memory, count * sizeof(double),
                        cudaMemcpyDeviceToHost));
        for (double number : numbers) {
            wrong += number != ndevices;
        }
        CUDA(cudaFree(devices[d].memory));
        CUDA(cudaStreamDestroy(devices[d].stream));
        NCCL(ncclCommDestroy(devices[d].comm));
    }
    printf("%d devices: %d wrong\n", ndevices, wrong);
    return wrong != 0;
}
