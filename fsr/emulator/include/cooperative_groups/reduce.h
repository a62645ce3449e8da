// Stand-in for CUDA's <cooperative_groups/reduce.h>.
#pragma once
#include "../fsr/cooperative_groups_reduce.h"
