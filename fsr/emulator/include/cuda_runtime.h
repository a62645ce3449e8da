// Stand-in for CUDA's <cuda_runtime.h>: what it declares for device code is always there on the host device.
#pragma once
#include "fsr/cuda.h"
