/* What a handler of SIGSEGV learns of the access; `context` is what the handler got. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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
