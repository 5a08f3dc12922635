// How much equal GPUs differ, from a profile of each (`lambcast profile`): the spread of which a
// step waits for the slowest (models/training/price/slowest_rank.h).
//
// With t_gk the time of product k on GPU g, of the products that every profile timed (of kernels,
// where a build without cuBLAS timed no products),
//
//   x_g = mean over k of ln t_gk, less the mean over all GPUs     how slow GPU g is
//   s^2 = sum over g of x_g^2 / (G - 1)                           spread of G GPUs
//
// The noise of a product averages out over k, so s is the GPUs' own.
//
// Left out: how a GPU changes with its load and temperature while it trains.
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
  int timed = 0;           // products or kernels of each
  std::string slowest;     // file of the slowest GPU
  double slowest_off = 0;  // its x_g
};

// From the profiles *.toml in `folder`, in the order of their names; nothing with fewer than two.
// Throws Error (usage) naming two files that are of different GPUs, or that share nothing.
std::optional<GpuSpread> gpu_spread_of(const std::filesystem::path& folder);

// "Equal GPUs differ by 0.8 % (8 profiles of 340 products); the slowest, rank-0003.toml, is ...".
std::string gpu_spread_sentence(const GpuSpread& spread);

// stack.gpu_spread of a description.
Sourced<double> as_measured(const GpuSpread& spread);

}  // namespace lambcast
