// The grid of matrix products that `lambcast profile` times, in each format that the GPU
// multiplies.
//
//   M  tokens of a micro batch      512, 2048, 8192
//   N x K  weights of a block       1024 x 1024 to 12288 x 12288, wide and tall
//
// fp16 and bf16 accumulate in fp32; tf32 and fp32 have fp32 data, with and without the matrix
// units; fp8 is E4M3 with bf16 results.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/profile/layer_shape.h"

namespace lambcast::cuda {

enum class ProductFormat { fp16, bf16, tf32, fp32, fp8 };
inline constexpr int product_formats = 5;

std::string_view name_of(ProductFormat format);
// Returns whether GPUs of this compute capability have hardware for the format.
bool multiplies(ProductFormat format, double compute_capability);

std::vector<Product> profiled_products();

}  // namespace lambcast::cuda
