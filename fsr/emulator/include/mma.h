// Stand-in for CUDA's <mma.h>: nvcuda::wmma.
#pragma once
#include "fsr/cuda.h"
#include "fsr/wmma.h"
