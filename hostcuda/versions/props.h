/* Properties of a device in the layout of the CUDA version that a file is compiled for; each face
 * has one such function. */
#pragma once

#include "../shared/face.h"

int tt_face_properties(struct cudaDeviceProp *prop, int device);
