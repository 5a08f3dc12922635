#include "kernels/profile/product_shape.h"

namespace lambcast::cuda {

std::string_view name_of(ProductFormat format) {
  constexpr std::string_view names[product_formats] = {"fp16", "bf16", "tf32", "fp32", "fp8"};
  return names[static_cast<int>(format)];
}

bool multiplies(ProductFormat format, double compute_capability) {
  switch (format) {
    case ProductFormat::fp16:
      return compute_capability >= 7.0;
    case ProductFormat::bf16:
    case ProductFormat::tf32:
      return compute_capability >= 8.0;
    case ProductFormat::fp8:
      return compute_capability >= 8.9;
    case ProductFormat::fp32:
      break;
  }
  return true;
}

std::vector<Product> profiled_products() {
  constexpr std::size_t weights[][2] = {{1024, 1024}, {3072, 768},   {1024, 4096},  {4096, 1024},
                                        {4096, 4096}, {14336, 4096}, {4096, 14336}, {12288, 12288}};
  std::vector<Product> products;
  for (const std::size_t m : {512, 2048, 8192})
    for (const auto& [n, k] : weights) products.push_back({m, n, k, 1});
  return products;
}

}  // namespace lambcast::cuda
