/* cmocka with what it needs before it, in the one order that compiles. Every unit test includes
 * this instead of <cmocka.h>. */
#pragma once

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */
