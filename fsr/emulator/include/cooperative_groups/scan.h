// Stand-in for CUDA's <cooperative_groups/scan.h>.
#pragma once
#include "../fsr/cooperative_groups_scan.h"
