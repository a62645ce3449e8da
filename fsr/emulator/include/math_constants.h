// Stand-in for CUDA's <math_constants.h>.
#pragma once
#include "fsr/math_constants.h"
