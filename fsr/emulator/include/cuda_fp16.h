// Stand-in for CUDA's <cuda_fp16.h>.
#pragma once
#include "fsr/cuda.h"
#include "fsr/half.h"
