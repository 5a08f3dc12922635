// Rates of kernels derived from the times in a file of `lambcast profile`, which has no [rates].
//
//   share of 16-bit products   fitted: all timed layers, with products priced by shape
//                              (matrix_product.h), take the measured time; multiplied by
//                              kept_in_training. Without layers, the timed products
//   shares of fp32 and fp8     the same from products in these formats, if the file has any
//   copies                     measured: copy_bandwidth, times the preset's share for the kernels
//                              of frameworks
//   start of a kernel          fitted: the minimum over all timed kernels, at their smallest size,
//                              of the time in excess of moving their bytes
//   all others                 those of the preset of the same GPU, with their kinds and sources
//
// The layers consist of products and one copy, so attention and element-wise kernels of frameworks
// are not timed. The preset is the one whose name is part of the GPU's name ("NVIDIA H100 80GB
// HBM3": h100), and of several the one with the closest memory size. A GPU without a preset gets
// the nominal rates that follow from its clock and multiprocessors; files without these keys give
// no rates.
//
// Not modelled: variants of a GPU with fewer multiprocessors than the preset's (H100 PCIe), except
// through the level of their products.
#pragma once

#include <optional>
#include <string>

#include "models/device/device.h"
#include "models/device/timed_products.h"

namespace lambcast {

// Share of the product rate in timed layers that whole training steps keep, since they heat the GPU
// for longer. Fitted: llm-foundry on H100 and PyTorch 2.11 on an H200 (whole_models.csv in
// validate/compute), off by 0.02 in the mean, one above and one below. For no other GPU are a
// profile and a step known.
inline constexpr double kept_in_training = 0.88;

// Errors of each of these two programs when the constant above is fitted to the other
// (validate/compute/kernel_rates_test.cc).
inline constexpr HeldOut held_out_of_profiles{0.054, 2};

// Returns the name of the preset that describes this GPU, or nothing.
std::optional<std::string> preset_of_gpu(const std::string& gpu, Bytes memory);

// Returns nothing if the file has no timed kernel or layer, or if neither a preset nor its own keys
// describe the GPU. Products that were not timed keep the preset's share.
std::optional<GpuRates> rates_of_profile(const Device& profile, const TimedChip& chip,
                                         const std::vector<TimedProducts>& products);

// Returns log(forecast / measured) of each layer, in the order of the device's layers. The times
// are sums over both passes and all micro batches, with products at the fitted share.
std::vector<double> errors_of_layers(const Device& profile);

}  // namespace lambcast
