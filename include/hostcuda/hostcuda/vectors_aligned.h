/* CUDA 13's vectors of four 64-bit elements with an alignment of 16 or 32 bytes. Part of
 * vector_types.h and vector_functions.h. */
#ifndef TUTTI_HOSTCUDA_VECTORS_ALIGNED_H_
#define TUTTI_HOSTCUDA_VECTORS_ALIGNED_H_

struct __attribute__((aligned(16))) long4_16a {
    long int x, y, z, w;
};
typedef struct long4_16a long4_16a;
struct __attribute__((aligned(32))) long4_32a {
    long int x, y, z, w;
};
typedef struct long4_32a long4_32a;
struct __attribute__((aligned(16))) ulong4_16a {
    unsigned long int x, y, z, w;
};
typedef struct ulong4_16a ulong4_16a;
struct __attribute__((aligned(32))) ulong4_32a {
    unsigned long int x, y, z, w;
};
typedef struct ulong4_32a ulong4_32a;
struct __attribute__((aligned(16))) longlong4_16a {
    long long int x, y, z, w;
};
typedef struct longlong4_16a longlong4_16a;
struct __attribute__((aligned(32))) longlong4_32a {
    long long int x, y, z, w;
};
typedef struct longlong4_32a longlong4_32a;
struct __attribute__((aligned(16))) ulonglong4_16a {
    unsigned long long int x, y, z, w;
};
typedef struct ulonglong4_16a ulonglong4_16a;
struct __attribute__((aligned(32))) ulonglong4_32a {
    unsigned long long int x, y, z, w;
};
typedef struct ulonglong4_32a ulonglong4_32a;
struct __attribute__((aligned(16))) double4_16a {
    double x, y, z, w;
};
typedef struct double4_16a double4_16a;
struct __attribute__((aligned(32))) double4_32a {
    double x, y, z, w;
};
typedef struct double4_32a double4_32a;

static inline struct long4_16a make_long4_16a(long int x, long int y, long int z, long int w)
{
    struct long4_16a v = {x, y, z, w};
    return v;
}

static inline struct long4_32a make_long4_32a(long int x, long int y, long int z, long int w)
{
    struct long4_32a v = {x, y, z, w};
    return v;
}

static inline struct ulong4_16a make_ulong4_16a(unsigned long int x, unsigned long int y,
                                                unsigned long int z, unsigned long int w)
{
    struct ulong4_16a v = {x, y, z, w};
    return v;
}

static inline struct ulong4_32a make_ulong4_32a(unsigned long int x, unsigned long int y,
                                                unsigned long int z, unsigned long int w)
{
    struct ulong4_32a v = {x, y, z, w};
    return v;
}

static inline struct longlong4_16a make_longlong4_16a(long long int x, long long int y,
                                                      long long int z, long long int w)
{
    struct longlong4_16a v = {x, y, z, w};
    return v;
}

static inline struct longlong4_32a make_longlong4_32a(long long int x, long long int y,
                                                      long long int z, long long int w)
{
    struct longlong4_32a v = {x, y, z, w};
    return v;
}

static inline struct ulonglong4_16a make_ulonglong4_16a(unsigned long long int x,
                                                        unsigned long long int y,
                                                        unsigned long long int z,
                                                        unsigned long long int w)
{
    struct ulonglong4_16a v = {x, y, z, w};
    return v;
}

static inline struct ulonglong4_32a make_ulonglong4_32a(unsigned long long int x,
                                                        unsigned long long int y,
                                                        unsigned long long int z,
                                                        unsigned long long int w)
{
    struct ulonglong4_32a v = {x, y, z, w};
    return v;
}

static inline struct double4_16a make_double4_16a(double x, double y, double z, double w)
{
    struct double4_16a v = {x, y, z, w};
    return v;
}

static inline struct double4_32a make_double4_32a(double x, double y, double z, double w)
{
    struct double4_32a v = {x, y, z, w};
    return v;
}

#endif
