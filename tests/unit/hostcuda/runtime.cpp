// The same checks through C++, where calls meet the typed overloads.
#include "runtime.c"
