// The values of --precision: data types of the weights and of the products of blocks. Products in 8
// and 4 bits are for models whose other parts are bf16.
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

  // Returns whether products have fewer bits than weights.
  bool is_narrow() const { return bytes_per_element(products) < bytes_of(weights); }
  std::string word() const;  // word of the narrower type
};

// All precisions, in the order of precision_words().
std::span<const PrecisionWord> precisions();
const std::vector<std::string>& precision_words();

}  // namespace lambcast
