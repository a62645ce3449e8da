#pragma once
#include "more/deepest.h"
#include <iostream>

inline void host_only() { std::cout << "host\n"; }

template <typename T>
__host__ __device__ inline T twice(T v)
{
    return v * DEEPEST_FACTOR;
}
