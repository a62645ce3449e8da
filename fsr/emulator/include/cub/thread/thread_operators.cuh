// Stand-in for <cub/thread/thread_operators.cuh>.
#pragma once
#include "../../fsr/cub_operators.h"
