// Computation of one transformer layer, forward and backward, timed with real matrix products.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/profile/document.h"
#include "kernels/profile/product_shape.h"
#include "kernels/profile/timing.h"

namespace lambcast::cuda {

// Returns the rate of a product of 8192 x 8192 x 8192, in fp16 with fp32 accumulation; 0 without
// cuBLASLt.
FlopRate time_large_product(Timer& timer);

// Times the layers with increasing micro batches, as far as the device's memory allows, up to the
// first whose backward pass takes 0.1 s. A layer without a fitting micro batch is left out. Empty
// without cuBLASLt.
std::vector<LayerTimes> time_layers(Timer& timer,
                                    const std::function<void(std::string_view)>& progress);
// Times the grid of products (product_shape.h) in every format that the GPU multiplies. A format
// that cuBLASLt rejects is left out and noted. Empty without cuBLASLt.
std::vector<ProductTimes> time_products_by_shape(
    Timer& timer, double compute_capability, std::vector<std::string>& notes,
    const std::function<void(std::string_view)>& progress);
// Returns why products cannot be timed; empty if they can.
std::string_view products_missing();
// Returns the version, such as "cuBLASLt 13.1.0"; empty if there is none.
std::string blas_version();

}  // namespace lambcast::cuda
