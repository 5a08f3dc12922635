// Description of one GPU: memory and compute rates, measured kernel times, and training speeds that
// others published for whole models.
//
// Descriptions are TOML (models/device/presets/*.toml, compiled in; or the file that `lambcast
// profile` writes). Times are interpolated as time against size, which keeps them monotone; an
// efficiency is never interpolated.
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

// Training throughput of one GPU against its micro batch, with the optimizer's share amortised over
// many accumulation steps: micro_batch / samples_per_s is the time of one forward and backward.
struct TrainingCurve {
  std::string model;           // the preset whose shape was timed; else a name alone
  std::string implementation;  // "deepspeed", "nvidia": whose kernels and framework
  std::int64_t seq_len = 0;
  std::vector<double> micro_batch;  // ascending
  std::vector<double> samples_per_s;
  Provenance provenance;
};

// Measured kernel time against elements, as `lambcast profile` writes it.
struct KernelCurve {
  std::string name;
  std::vector<double> elements;  // ascending
  std::vector<double> time_us;
  std::vector<double> spread_us;  // interquartile ranges, where the profile has them
  double bytes_per_element = 0;
  Provenance provenance;
};

// Measured time of one transformer block against the micro batch.
struct LayerCurve {
  std::int64_t hidden = 0, heads = 0, ffn = 0, seq_len = 0;
  std::vector<double> micro_batch;  // ascending
  std::vector<double> forward_us, backward_us;
  Provenance provenance;
};

struct Device {
  std::string name;
  Bytes memory_capacity;
  Sourced<Bandwidth> memory_bandwidth;  // name plate
  Sourced<Bandwidth> copy_bandwidth;    // what a large copy reaches, bytes read plus written
  Sourced<FlopRate> peak_half;          // dense fp16 or bf16 matrix products
  Sourced<FlopRate> peak_single;        // the same products on fp32 data (TF32 where there is one)
  Sourced<double> matrix_efficiency;    // share of peak_half that training reaches, without a curve
  Sourced<Duration> launch_overhead;    // host time to start one kernel
  Sourced<Duration> framework_launch;   // the same from a framework's eager mode
  Sourced<Duration> sync_overhead;      // host waits for the device and goes on
  Sourced<double> forward_share;        // of the time of a forward and backward
  // Copies between this device and host memory, pageable and pinned.
  Sourced<Bandwidth> pageable_d2h, pageable_h2d, pinned_d2h, pinned_h2d;
  std::optional<GpuRates> rates;  // of kernels by their shape, block_time.h
  // Rates of the GPU on which the training curves were timed: as described, even if --set changes
  // `rates`.
  std::optional<GpuRates> timed_rates;
  std::vector<TrainingCurve> training_curves;
  std::vector<KernelCurve> kernels;
  std::vector<LayerCurve> layers;
};

// A curve, and a layer, that says no kind and source has `of_curves`; by default those of the
// device's copy_bandwidth.
Device decode_device(const Table& root, const std::optional<Provenance>& of_curves = std::nullopt);
// A preset by name, or a file (ends in .toml or holds a '/').
Device load_device(const std::string& name_or_path);
// The same, parsed, with keys changed as `--set device.KEY=VALUE` does (device_overrides.cc):
//
//   peak_half                                         of [device]
//   rates.share_half                                  of [rates]
//   kernel.NAME.time_us                               of a curve, by `curve_name`: all its values,
//   layer.HIDDEN.HEADS.FFN.SEQ_LEN.forward_us         as a list
//   training_curve.MODEL.IMPLEMENTATION.SEQ_LEN.samples_per_s
//
// What changes is assumed, with the flag as its source. Throws Error (usage) with that flag.
Device load_device(const Table& parsed, const std::string& name_or_path, const Overrides& said);

// Before Ampere no unit multiplies bf16: PyTorch forms such products in fp32, and slowly
// (pytorch/pytorch #148322, #129288). A GPU as such a run finds it: 16-bit products at the rate of
// fp32's, nothing that was timed in fp16, and no error known of others.
bool emulates_bf16(const Device& device);
Device in_emulated_bf16(Device device);

// Returns the name of a curve among those of a device, behind the name of its list:
// "layer.1024.16.4096.128".
std::string curve_name(const TrainingCurve& curve);
std::string curve_name(const KernelCurve& curve);
std::string curve_name(const LayerCurve& curve);
std::vector<std::string> device_names();
std::string device_text(const std::string& name);

// The measured kernel of that name, or null. A profile of another release may have measured a
// kernel of the same name that moves more or less: where both say how many bytes per element, and
// are 3 % apart, that is not it.
const KernelCurve* find_kernel(const Device& device, std::string_view name,
                               double bytes_per_element = 0);

// Piecewise linear through the points, extended by the first and last slope; a single point is
// taken as proportional. Never below zero. `x` must be ascending and as long as `y`.
double interpolate(const std::vector<double>& x, const std::vector<double>& y, double at);

}  // namespace lambcast
