// Rates of kernels for a file of `lambcast profile`, from what it timed. The file has no [rates].
//
//   share of 16-bit products   fitted: all timed layers, their products priced by shape
//                              (matrix_product.h), take the time that was measured; times
//                              kept_in_training. Without layers, the timed products
//   shares of fp32 and fp8     the same from products in these formats, if the file has any
//   copies                     measured: copy_bandwidth, times the share of it that the preset
//                              gives the kernels of frameworks
//   start of a kernel          fitted: the least over all timed kernels, at their smallest size, of
//                              the time beyond that of their bytes
//   all others                 those of the preset of the same GPU, each with its own kind and
//   source
//
// The layers hold nothing but products and one copy, so attention and element-wise kernels of
// frameworks are not timed. The preset is the one whose name the GPU's name contains ("NVIDIA H100
// 80GB HBM3": h100), and of several the one of the nearest memory. A GPU without a preset gets the
// name plate that its clock and multiprocessors make; files written before these keys have none.
//
// Not modelled: variants of a GPU with fewer multiprocessors than the preset's (H100 PCIe), except
// through the level of their products.
#pragma once

#include <optional>
#include <string>

#include "models/device/device.h"
#include "models/device/timed_products.h"

namespace lambcast {

// Share of the level of timed layers that products keep in whole training steps, which heat the GPU
// for longer. Fitted: llm-foundry on H100 and PyTorch 2.11 on an H200 (whole_models.csv in
// validate/compute), off by 0.02 in the mean, one above and one below. Of no other GPU is a profile
// and a step known.
inline constexpr double kept_in_training = 0.88;

// Errors of these two programs when the constant above is fitted to the other one alone
// (validate/compute/kernel_rates_test.cc).
inline constexpr HeldOut held_out_of_profiles{0.054, 2};

// Returns the name of the preset that describes this GPU, or nothing.
std::optional<std::string> preset_of_gpu(const std::string& gpu, Bytes memory);

// Returns nothing if the file holds no timed kernel or layer, or neither a preset nor its own keys
// describe the GPU. Products that were not timed keep the preset's share.
std::optional<GpuRates> rates_of_profile(const Device& profile, const TimedChip& chip,
                                         const std::vector<TimedProducts>& products);

// Returns the logarithms of forecast over measured time of each layer, for both passes of all micro
// batches together and products at the level of the layers, in the order of the device's layers.
std::vector<double> errors_of_layers(const Device& profile);

}  // namespace lambcast
