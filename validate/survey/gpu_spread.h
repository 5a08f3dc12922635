// Spread of equal GPUs, from a profile of each (`lambcast profile`). A step waits for the slowest
// of them (models/training/price/slowest_rank.h).
//
// With t_gk the time of product k on GPU g, over the products that every profile timed (or over
// kernels, if a build without cuBLAS timed no products),
//
//   x_g = mean over k of ln t_gk, minus the mean over all GPUs    slowness of GPU g
//   s^2 = sum over g of x_g^2 / (G - 1)                           spread of G GPUs
//
// The noise of single products averages out over k, so s is a property of the GPUs.
//
// Left out: changes of a GPU with its load and temperature during training.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/provenance.h"

namespace lambcast {

struct GpuSpread {
  double spread = 0;       // s
  int gpus = 0;            // G
  int timed = 0;           // products or kernels per GPU
  std::string slowest;     // file of the slowest GPU
  double slowest_off = 0;  // its x_g
};

// Computes the spread from the profiles *.toml in `folder`, in the order of their names; nothing
// for fewer than two. Throws Error (usage) naming two files that are of different GPUs, or that
// share no kernel.
std::optional<GpuSpread> gpu_spread_of(const std::filesystem::path& folder);

// Returns "Equal GPUs differ by 0.8 % (8 profiles of 340 products); the slowest, rank-0003.toml, is
// ...".
std::string gpu_spread_sentence(const GpuSpread& spread);

// Returns the spread as stack.gpu_spread of a description.
Sourced<double> as_measured(const GpuSpread& spread);

}  // namespace lambcast
