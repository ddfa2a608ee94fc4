// C++'s streams on pinned memory in flight, under TUTTI_CHECK=race:exit: a sound program finds its
// bytes, and what another one does too early is named and done all the same.
// usage: checked_streams [write|read]
#include "cuda_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace
{
const size_t bytes = 64 << 10;
char *pinned, *device;
cudaStream_t stream;

void expect(bool good, int line)
{
    if (good) return;
    std::cerr << "line " << line << " does not hold" << std::endl;
    std::exit(2);
}
#define OK(call) expect((call) == 0, __LINE__)
#define CHECK(what) expect(what, __LINE__)

void save(const std::string &path, const char *from, size_t count)
{
    std::ofstream file(path, std::ios::binary);
    file.write(from, static_cast<std::streamsize>(count));
    CHECK(static_cast<bool>(file.flush()));
}

void load(const std::string &path, char *to, size_t count)
{
    std::ifstream file(path, std::ios::binary);
    file.read(to, static_cast<std::streamsize>(count));
    CHECK(static_cast<bool>(file) && to[0] == 3 && to[count - 1] == 3);
}

// Half a page is in flight, a file's bytes come to and from the other half.
void neighbours(const std::string &path)
{
    for (int turn = 0; turn < 20; turn++) {
        OK(cudaMemcpyAsync(pinned + 2048, device, 2048, cudaMemcpyDefault, stream));
        std::memset(pinned, 3, 2048);
        save(path, pinned, 2048);
        std::memset(pinned, 0, 2048);
        load(path, pinned, 2048);
        OK(cudaStreamSynchronize(stream));
    }
    OK(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyDefault, stream));
    save(path, pinned, bytes); // both read
    OK(cudaStreamSynchronize(stream));
}

void race(const std::string &path, const char *what)
{
    std::memset(pinned, 3, bytes);
    save(path, pinned, bytes);
    if (!std::strcmp(what, "read")) {
        OK(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyDefault, stream));
        load(path, pinned, bytes);
    } else {
        OK(cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDefault, stream));
        save(path, pinned, bytes);
    }
    std::remove(path.c_str());
}

void named(const char *program, const char *what)
{
    std::string command = std::string("exec ") + program + " " + what + " 2>&1", said;
    char line[1024];
    FILE *pipe = popen(command.c_str(), "r");
    while (std::fgets(line, sizeof(line), pipe))
        said += line;
    int status = pclose(pipe);
    bool good = WIFEXITED(status) && WEXITSTATUS(status) == 66 &&
                said.find("tutti check: race: ") != std::string::npos;
    if (!good) std::cerr << what << ": status " << status << ", said: " << said << std::endl;
    CHECK(good);
}
} // namespace

int main(int argc, char **argv)
{
    const std::string path = "checked-streams-" + std::to_string(getpid());
    setenv("TUTTI_DEVICES", "1", 0);
    setenv("TUTTI_CHECK", "race:exit", 1);
    if (argc == 1) {
        named(argv[0], "write");
        named(argv[0], "read");
    }
    OK(cudaMallocHost(reinterpret_cast<void **>(&pinned), bytes));
    OK(cudaMalloc(reinterpret_cast<void **>(&device), bytes));
    OK(cudaMemset(device, 0, bytes));
    OK(cudaDeviceSynchronize());
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (argc > 1) {
        race(path, argv[1]);
    } else {
        neighbours(path);
    }
    std::remove(path.c_str());
    return 0;
}
