#include "kernels/profile/layer.h"

namespace lambcast::cuda {

std::string_view products_missing() {
  return "no matrix products: this build of lambcast found no cuBLASLt in the CUDA toolkit";
}
std::string blas_version() { return {}; }

FlopRate time_large_product(Timer&) { return {}; }

std::vector<ProductTimes> time_products_by_shape(Timer&, double, std::vector<std::string>&,
                                                 const std::function<void(std::string_view)>&) {
  return {};
}

std::vector<LayerTimes> time_layers(Timer&, const std::function<void(std::string_view)>&) {
  return {};
}

}  // namespace lambcast::cuda
