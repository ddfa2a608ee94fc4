// The layouts of the CUDA runtime as C++ sees them.
#include "../../abi/assert_cudart.c"
