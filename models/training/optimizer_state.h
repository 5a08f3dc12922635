// What an optimizer keeps beside the master weights of a whole model.
#pragma once

#include <vector>

#include "models/optimizer/optimizer_model.h"
#include "models/shape/shape.h"
#include "models/training/work.h"

namespace lambcast {

// A tensor as factored states see it: one side of a matrix is the model's hidden size; where that
// does not divide it, it is taken for a square.
StateTensor state_tensor(const ModelShape& model, const Tensor& tensor);

// Mean over all elements that the optimizer is given.
double state_bytes_per_element(OptimizerType type, const ModelShape& model);

// What the update computes beside its passes: products and calls among ranks that share states.
struct UpdateExtras {
  std::vector<ProductWork> products;
  double calls = 0;  // blocking all-reduces, one after another
  Bytes bytes_per_call{};
};
// `share`: of the model that the rank updates; `shared`: with other ranks.
UpdateExtras update_extras(OptimizerType type, StepKind step, const ModelShape& model, double share,
                           bool shared);

}  // namespace lambcast
