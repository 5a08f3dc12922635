// The compute of one transformer layer, forward and backward, timed with real matrix products.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/profile/document.h"
#include "kernels/profile/product_shape.h"
#include "kernels/profile/timing.h"

namespace lambcast::cuda {

// One product of 8192 x 8192 x 8192, fp16 with fp32 accumulation; 0 when there is no cuBLASLt.
FlopRate time_large_product(Timer& timer);

// Times the layers over micro-batches as far as the device's memory goes, up to the first whose
// backward pass takes 0.1 s; one of which nothing fits is left out. Empty when there is no
// cuBLASLt.
std::vector<LayerTimes> time_layers(Timer& timer,
                                    const std::function<void(std::string_view)>& progress);
// Times the grid of products (product_shape.h) in every format that the GPU multiplies. A format
// that cuBLASLt refuses is left out and noted. Empty when there is no cuBLASLt.
std::vector<ProductTimes> time_products_by_shape(
    Timer& timer, double compute_capability, std::vector<std::string>& notes,
    const std::function<void(std::string_view)>& progress);
// Why there are no matrix products; empty when there are.
std::string_view products_missing();
// "cuBLASLt 13.1.0"; empty when there is none.
std::string blas_version();

}  // namespace lambcast::cuda
