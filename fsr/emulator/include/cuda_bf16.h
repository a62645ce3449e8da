// Stand-in for CUDA's <cuda_bf16.h>.
#pragma once
#include "fsr/cuda.h"
#include "fsr/bfloat16.h"
