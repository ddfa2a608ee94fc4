// The checker of nccl-tests without a GPU: its kernels, and after them one function of the host for
// each. Takes the place of verifiable.o; docs/programs.md has the commands.
#include "verifiable.cu" // of nccl-tests, found by -I

#include <tutti.h>

namespace
{

struct Part {
    intptr_t begin, end;
};

Part part_of(const tuttiBlock &b, intptr_t count)
{
    intptr_t each = count / b.grid.x, rest = count % b.grid.x, i = b.index.x;
    return {i * each + std::min(i, rest), (i + 1) * each + std::min(i + 1, rest)};
}

template <class T, class Op>
void input(const tuttiBlock &b, T *to, intptr_t count, Op op, int nranks, int rank, uint64_t seed,
           intptr_t first)
{
    Part part = part_of(b, count);
    for (intptr_t i = part.begin; i < part.end; i++) {
        to[i] = genInput<T>(op, nranks, rank, seed, first + i);
    }
}

template <class T, class Op>
void expected(const tuttiBlock &b, T *to, intptr_t count, Op op, int nranks, uint64_t seed,
              intptr_t first)
{
    Part part = part_of(b, count);
    for (intptr_t i = part.begin; i < part.end; i++) {
        to[i] = genOutput<T>(op, nranks, seed, first + i);
    }
}

template <class T>
void verify(const tuttiBlock &b, const T *got, const T *want, intptr_t count, unsigned tolerance,
            int64_t *bad)
{
    Part part = part_of(b, count);
    for (intptr_t i = part.begin; i < part.end; i++) {
        T far = got[i] < want[i] ? want[i] - got[i] : got[i] - want[i];
        *bad += far > tolerance;
    }
}

template <class... Ops> struct Operators {
    template <class T> static int type()
    {
        return ((tuttiRegisterKernel(prepareInput2<T, Ops>, input<T, Ops>) |
                 tuttiRegisterKernel(prepareExpected2<T, Ops>, expected<T, Ops>)) |
                ...);
    }
    template <class... Ts> static int types() { return (type<Ts>() | ...); }
};

template <class... Ts> int verifiers()
{
    return (tuttiRegisterKernel(verifyPrepared<Ts>, verify<Ts>) | ...);
}

int registered = Operators<ReduceNil, ReduceSum, ReduceProd, ReduceMin, ReduceMax, ReduceAvg,
                           ReducePreMulSum>::types<int8_t, uint8_t, int32_t, uint32_t, int64_t,
                                                   uint64_t, half, __nv_bfloat16, __nv_fp8_e4m3,
                                                   __nv_fp8_e5m2, float, double>() |
                 verifiers<uint8_t, uint16_t, uint32_t, uint64_t>();

} // namespace
