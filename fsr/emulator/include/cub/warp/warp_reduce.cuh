// Stand-in for <cub/warp/warp_reduce.cuh>.
#pragma once
#include "../../fsr/cub_warp.h"
