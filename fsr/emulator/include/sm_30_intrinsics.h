// Stand-in for CUDA's <sm_30_intrinsics.h>: what it declares for device code is always there on the host device.
#pragma once
#include "fsr/cuda.h"
