// The same checks through C++.
#include "ipc.c"
