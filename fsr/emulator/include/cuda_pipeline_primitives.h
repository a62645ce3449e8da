// Stand-in for CUDA's <cuda_pipeline_primitives.h>.
#pragma once
#include "fsr/cuda.h"
#include "fsr/pipeline.h"
