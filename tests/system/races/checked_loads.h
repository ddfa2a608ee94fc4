/* What the program shares with its library. */
#pragma once

extern __attribute__((visibility(
    "default"))) char *checked_loads_device; /* 8192 bytes; the library's are those from 4096 on */
