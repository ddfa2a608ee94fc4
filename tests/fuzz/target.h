/* What a fuzz target is: libFuzzer's entry, so that clang's engine and our own driver both run it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);
