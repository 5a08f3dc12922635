// Two small real training problems: Fisher's iris data, 150 flowers of 3 species with 4 lengths
// each. R. A. Fisher, The use of multiple measurements in taxonomic problems, Annals of Eugenics 7
// (1936); from the UCI Machine Learning Repository, doi:10.24432/C56C76, CC BY 4.0.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "kernels/layout.h"

namespace lambcast::iris {

struct Problem {
  TensorLayout tensors;
  std::vector<float> initial;
  std::size_t rows = 0;
  // Returns the mean loss over rows first, first + stride, ...; adds the gradient to `gradient`
  // unless that is empty.
  std::function<double(std::span<const float> weights, std::size_t first, std::size_t stride,
                       std::span<float> gradient)>
      loss;
};

// Linear regression of the petal width on the three other lengths, all standardised; mean squared
// error.
Problem regression();
// Returns the loss of the least-squares solution, from the normal equations, which training must
// reach.
double least_squares_loss();
// Classification of the species from four standardised lengths: a 4-16-3 network with tanh, softmax
// and cross entropy.
Problem network();

}  // namespace lambcast::iris
