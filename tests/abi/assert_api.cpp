// The same checks as C++.
#include "assert_api.c"
