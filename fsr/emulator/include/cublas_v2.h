// Stand-in for <cublas_v2.h>: what device code has from it.
#pragma once
#include "cuda_bf16.h"
#include "cuda_fp16.h"
