// Stand-in for CUDA's <cuda_pipeline.h>: its primitives.
#pragma once
#include "cuda_pipeline_primitives.h"
