// The other header name of CUDA's runtime, for headers that include it.
#pragma once

#include "kernels/cuda_on_cpu/cuda_runtime.h"
