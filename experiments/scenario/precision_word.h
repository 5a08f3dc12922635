// The values of --precision: data types of the weights and of the products of blocks. Products in 8
// and 4 bits are for models that are bf16 elsewhere.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/device/gpu_rates.h"
#include "models/recipe/precision.h"

namespace lambcast {

struct PrecisionWord {
  DataType weights;
  MatrixFormat products;

  // Whether products are in fewer bits than weights.
  bool is_narrow() const { return bytes_per_element(products) < bytes_of(weights); }
  std::string word() const;  // of the narrower
};

// In the order of precision_words().
std::span<const PrecisionWord> precisions();
const std::vector<std::string>& precision_words();

}  // namespace lambcast
