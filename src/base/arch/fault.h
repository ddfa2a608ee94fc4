/* What a handler of SIGSEGV learns of the access; `context` is what the handler got. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

/* Whether the access was a store; `guess` where the processor's file does not know. */
static inline bool tt_cpu_fault_writes(const ucontext_t *context, bool guess)
{
#if defined(__x86_64__)
    (void)guess;
    return context->uc_mcontext.gregs[REG_ERR] & 2;
#else
    (void)context;
    return guess;
#endif
}

/* After the handler the thread runs one instruction and gets SIGTRAP, or goes on as ever. False:
 * the processor cannot. */
static inline bool tt_cpu_fault_step(ucontext_t *context, bool step)
{
#if defined(__x86_64__)
    const greg_t trap = 0x100; /* TF */
    greg_t *flags = &context->uc_mcontext.gregs[REG_EFL];
    *flags = step ? *flags | trap : *flags & ~trap;
    return true;
#else
    (void)context;
    (void)step;
    return false;
#endif
}

#if defined(__x86_64__)
/* Bytes that an instruction of the map behind 0x0f moves: `prefix` is 0, 0x66, 0xf3 or 0xf2. */
static inline size_t tt_cpu_vector_bytes(unsigned char op, unsigned char prefix, size_t full)
{
    bool moves = op == 0x10 || op == 0x11 || (op >= 0x51 && op <= 0x5f && op != 0x5a);
    if (op == 0x6f || op == 0x7f || op == 0x28 || op == 0x29 || op == 0x2b || op == 0xe7)
        return full;
    if (!moves) return 1;
    if (prefix == 0xf3) return 4;
    return prefix == 0xf2 ? 8 : full;
}

/* From the byte that says it is coded for AVX, in two bytes or three. */
static inline size_t tt_cpu_vex_bytes(const unsigned char *at)
{
    static const unsigned char prefixes[] = {0, 0x66, 0xf3, 0xf2};
    bool longer = *at == 0xc4;
    if (longer && (at[1] & 31) != 1) return 1; /* another map */
    unsigned char last = at[longer ? 2 : 1];
    return tt_cpu_vector_bytes(at[longer ? 3 : 2], prefixes[last & 3], last & 4 ? 32 : 16);
}

static inline size_t tt_cpu_plain_bytes(unsigned char op, bool half, bool wide)
{
    bool arithmetic = op < 0x40 && (op & 7) < 4;
    bool sized = arithmetic || op == 0x89 || op == 0x8b || op == 0x83 || op == 0x81 || op == 0xc7 ||
                 op == 0xff || op == 0xf7 || op == 0x63 || op == 0x85;
    if (!sized || (arithmetic && !(op & 1))) return 1;
    if (op == 0x63) return 4;
    if (wide) return 8;
    return half ? 2 : 4;
}
#endif

/* How many bytes the access is certain to touch, from the address that the handler got; 0: it is
 * atomic, or nothing is known. */
static inline size_t tt_cpu_fault_bytes(const ucontext_t *context)
{
#if defined(__x86_64__)
    const unsigned char *at = (const unsigned char *)(uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    unsigned char prefix = 0;
    bool half = false;
    for (; *at && strchr("\xf0\x66\xf2\xf3\x2e\x36\x3e\x26\x64\x65\x67", *at); at++) {
        if (*at == 0xf0) return 0; /* lock */
        if (*at == 0x66) half = true;
        if (*at >= 0xf2) prefix = *at;
    }
    bool rex = (*at & 0xf0) == 0x40;
    bool wide = rex && (*at & 8);
    if (*at == 0xc4 || *at == 0xc5) return tt_cpu_vex_bytes(at);
    at += rex;
    if (*at == 0x86 || *at == 0x87) return 0; /* xchg locks */
    if (half && !prefix) prefix = 0x66;
    return *at == 0x0f ? tt_cpu_vector_bytes(at[1], prefix, 16)
                       : tt_cpu_plain_bytes(*at, half, wide);
#else
    (void)context;
    return 0;
#endif
}

/* The instruction; NULL: not known. */
static inline const void *tt_cpu_fault_site(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (const void *)(uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#else
    (void)context;
    return NULL;
#endif
}
