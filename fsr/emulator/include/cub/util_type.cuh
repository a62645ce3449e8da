// Stand-in for <cub/util_type.cuh>.
#pragma once
#include "../fsr/cub_operators.h"
