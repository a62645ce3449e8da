// Stand-in for CUDA's <cooperative_groups.h>.
#pragma once
#include "fsr/cuda.h"
#include "fsr/cooperative_groups.h"
