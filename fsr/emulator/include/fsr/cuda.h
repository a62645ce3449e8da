// The CUDA language on the CPU: included before the first line of every kernel that the host device compiles.
#pragma once
#include "runtime.h"

#include "given.h"

#include "qualifiers.h"
#include "vector_types.h"

#include "math_constants.h"
#include "math_intrinsics.h"
#include "integer_intrinsics.h"
#include "simd_in_word.h"

#include "atomics.h"
#include "barriers.h"
#include "memory.h"
#include "warp.h"

#include "services.h"

#include "fast_math.h"

#include "refused.h"
