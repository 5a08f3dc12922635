// Description of one GPU: memory and compute rates, measured kernel times, and published training
// speeds of whole models.
//
// Descriptions are TOML (models/device/presets/*.toml, compiled in; or the file written by
// `lambcast profile`). Times are interpolated over size, which keeps them monotone; efficiencies
// are never interpolated.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/device/gpu_rates.h"
#include "sim/base/overrides.h"
#include "sim/base/provenance.h"
#include "sim/base/table.h"
#include "sim/base/units.h"

namespace lambcast {

// Training throughput of one GPU over its micro batch, with the optimizer's share amortised over
// many accumulation steps: micro_batch / samples_per_s is the time of one forward and backward
// pass.
struct TrainingCurve {
  std::string model;           // preset whose shape was timed; else only a name
  std::string implementation;  // framework with its kernels: "deepspeed", "nvidia"
  std::int64_t seq_len = 0;
  std::vector<double> micro_batch;  // ascending
  std::vector<double> samples_per_s;
  Provenance provenance;
};

// Measured times of a kernel by number of elements, as written by `lambcast profile`.
struct KernelCurve {
  std::string name;
  std::vector<double> elements;  // ascending
  std::vector<double> time_us;
  std::vector<double> spread_us;  // interquartile ranges, if the profile has them
  double bytes_per_element = 0;
  Provenance provenance;
};

// Measured times of one transformer block by micro batch.
struct LayerCurve {
  std::int64_t hidden = 0, heads = 0, ffn = 0, seq_len = 0;
  std::vector<double> micro_batch;  // ascending
  std::vector<double> forward_us, backward_us;
  Provenance provenance;
};

struct Device {
  std::string name;
  Bytes memory_capacity;
  Sourced<Bandwidth> memory_bandwidth;  // nominal
  Sourced<Bandwidth> copy_bandwidth;    // rate of a large copy, bytes read plus written
  Sourced<FlopRate> peak_half;          // dense fp16 or bf16 matrix products
  Sourced<FlopRate> peak_single;        // matrix products on fp32 data (TF32 if available)
  Sourced<double> matrix_efficiency;    // share of peak_half in training without a curve
  Sourced<Duration> launch_overhead;    // host time to start one kernel
  Sourced<Duration> framework_launch;   // host time to start one kernel in a framework's eager mode
  Sourced<Duration> sync_overhead;      // time of the host to wait for the device and continue
  Sourced<double> forward_share;        // share of forward in the time of forward and backward
  // Rates of copies between this device and host memory, pageable and pinned.
  Sourced<Bandwidth> pageable_d2h, pageable_h2d, pinned_d2h, pinned_h2d;
  std::optional<GpuRates> rates;  // rates of kernels by shape, block_time.h
  // Rates of the GPU on which the training curves were timed: those of the description, even if
  // --set changes `rates`.
  std::optional<GpuRates> timed_rates;
  std::vector<TrainingCurve> training_curves;
  std::vector<KernelCurve> kernels;
  std::vector<LayerCurve> layers;
};

// Decodes a description. Curves and layers without kind and source get `of_curves`, by default the
// provenance of the device's copy_bandwidth.
Device decode_device(const Table& root, const std::optional<Provenance>& of_curves = std::nullopt);
// Loads a preset by name, or a file (its name ends in .toml or contains a '/').
Device load_device(const std::string& name_or_path);
// Loads a parsed description with keys changed as by `--set device.KEY=VALUE`
// (device_overrides.cc):
//
//   peak_half                                         of [device]
//   rates.share_half                                  of [rates]
//   kernel.NAME.time_us                               of a curve, by `curve_name`: all its values,
//   layer.HIDDEN.HEADS.FFN.SEQ_LEN.forward_us         as a list
//   training_curve.MODEL.IMPLEMENTATION.SEQ_LEN.samples_per_s
//
// Changed values become assumed, with the flag as their source. Throws Error (usage) with that
// flag.
Device load_device(const Table& parsed, const std::string& name_or_path, const Overrides& said);

// Before Ampere no unit multiplies bf16: PyTorch emulates such products slowly in fp32
// (pytorch/pytorch #148322, #129288). in_emulated_bf16() returns the GPU for such a run: 16-bit
// products at the rate of fp32, without times measured in fp16 and without held-out errors.
bool emulates_bf16(const Device& device);
Device in_emulated_bf16(Device device);

// Returns the name of a curve within the device, with the name of its list in front:
// "layer.1024.16.4096.128".
std::string curve_name(const TrainingCurve& curve);
std::string curve_name(const KernelCurve& curve);
std::string curve_name(const LayerCurve& curve);
std::vector<std::string> device_names();
std::string device_text(const std::string& name);

// Returns the measured kernel of that name, or null. A profile of another release may contain a
// kernel of the same name that moves other amounts: if both state bytes per element that differ by
// 3 % or more, it does not match.
const KernelCurve* find_kernel(const Device& device, std::string_view name,
                               double bytes_per_element = 0);

// Interpolates linearly between the points, and extrapolates with the first and last slope. A
// single point is extended in proportion. The result is never below zero. `x` must be ascending and
// as long as `y`.
double interpolate(const std::vector<double>& x, const std::vector<double>& y, double at);

}  // namespace lambcast
