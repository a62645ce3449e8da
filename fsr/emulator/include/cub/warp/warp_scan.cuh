// Stand-in for <cub/warp/warp_scan.cuh>.
#pragma once
#include "../../fsr/cub_warp.h"
