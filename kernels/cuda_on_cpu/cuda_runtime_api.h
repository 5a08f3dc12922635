// CUDA's other name for its runtime, for headers that include that one.
#pragma once

#include "kernels/cuda_on_cpu/cuda_runtime.h"
