#pragma once

#include "kernels/cuda_on_cpu/cuda_runtime.h"
