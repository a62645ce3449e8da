// Stand-in for <cub/block/block_reduce.cuh>.
#pragma once
#include "../../fsr/cub_block.h"
