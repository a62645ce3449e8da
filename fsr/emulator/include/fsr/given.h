// What nvcc gives a file without being asked, or through host headers that the cut leaves out: limits, fixed-width
// integers, type traits, std::min and its like, short names of unsigned types.
#pragma once
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <bits/stl_algobase.h>
#include <limits>
#include <type_traits>
#include <utility>

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
