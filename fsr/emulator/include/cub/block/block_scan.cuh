// Stand-in for <cub/block/block_scan.cuh>.
#pragma once
#include "../../fsr/cub_block.h"
