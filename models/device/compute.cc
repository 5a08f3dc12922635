#include "models/device/compute.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "models/device/convolution_time.h"
#include "models/shape/likeness.h"
#include "models/shape/load.h"

namespace lambcast {
namespace {

// Number of kernels that a framework starts for one transformer block, forward and backward
// together; an unfused PyTorch encoder layer has about a third of them forward.
constexpr double launches_per_block = 120;

// Number of kernels for a convolution with batch norm and ReLU under autocast. Forward: weight
// cast, convolution, norm and ReLU. Backward: ReLU, norm, the gradients of input and weight, and
// the cast of the weight gradient.
constexpr double launches_per_convolution = 9;

double launches_of(const ModelShape& model) {
  if (!is_convolutional(model))
    return launches_per_block * static_cast<double>(std::max<std::int64_t>(1, model.layers));
  const auto is_weight = [&](const Tensor& tensor) { return group_of(model, tensor) == "decay"; };
  return launches_per_convolution *
         static_cast<double>(std::ranges::count_if(model.tensors, is_weight));
}

double curve_time_s(const TrainingCurve& curve, double micro_batch) {
  std::vector<double> time(curve.micro_batch.size());
  for (std::size_t i = 0; i < time.size(); ++i)
    time[i] = curve.micro_batch[i] / curve.samples_per_s[i];
  return interpolate(curve.micro_batch, time, micro_batch);
}

// Returns the curve whose dependence on the micro batch is used: the curve itself or, for a single
// point, a fuller curve of the same model and implementation. Null if there is none.
const TrainingCurve* shape_of(const TrainingCurve& curve, const Device& device) {
  if (curve.micro_batch.size() > 1) return &curve;
  for (const TrainingCurve& fuller : device.training_curves)
    if (fuller.micro_batch.size() > 1 && fuller.model == curve.model &&
        fuller.implementation == curve.implementation)
      return &fuller;
  return nullptr;
}

// Returns the time of a micro batch on the curve. A curve of a single point is extended by the
// fuller curve, read at the same number of tokens, since half the micro batch takes more than half
// the time.
double curve_time_s(const Device& device, const TrainingCurve& curve, double micro_batch) {
  const TrainingCurve* shape = shape_of(curve, device);
  if (shape == &curve) return curve_time_s(curve, micro_batch);
  const double known = curve.micro_batch[0] / curve.samples_per_s[0];
  if (shape == nullptr) return known * micro_batch / curve.micro_batch[0];
  const double ratio = shape->seq_len == 0 ? 1
                                           : static_cast<double>(curve.seq_len) /
                                                 static_cast<double>(shape->seq_len);
  return known * curve_time_s(*shape, micro_batch * ratio) /
         curve_time_s(*shape, curve.micro_batch[0] * ratio);
}

double flops_per_token(const ModelShape& model, std::int64_t seq_len) {
  return forward_flops(model, seq_len).value() /
         static_cast<double>(std::max<std::int64_t>(1, seq_len));
}

// Name of a program, and the format of its products.
struct Program {
  const std::string& name;
  MatrixFormat format;
};

bool has_convolution_kernels(const Device& device, const ModelShape& model) {
  return device.rates && !model.convolutions.empty();
}

double kernels_s(const ModelShape& model, const Program& program, double images,
                 const GpuRates& rates) {
  const ConvolutionRun run = convolution_run(program.name, program.format);
  return convolution_times(model, std::llround(images), run, rates).both().s();
}

// Returns the time of the net's kernels, multiplied by the ratio of the curve's time to the time of
// its own net's kernels. If the blocks are alike, the ratio is taken at the same number of images,
// else at the nearest number that was timed.
double scaled_by_kernels_s(const Device& device, const TrainingCurve& curve,
                           const ModelShape& curve_model, const ModelShape& model, double images,
                           const Program& program) {
  const double timed = likeness(model, curve_model) == Likeness::other
                           ? std::clamp(images, curve.micro_batch.front(), curve.micro_batch.back())
                           : images;
  return kernels_s(model, program, images, *device.rates) * curve_time_s(device, curve, timed) /
         kernels_s(curve_model, {curve.implementation, MatrixFormat::half}, timed,
                   device.timed_rates.value_or(*device.rates));
}

// Returns the curve's time at the same number of tokens, scaled by both models' FLOPs per token.
// For images the curve is read at the number of samples with the same FLOPs.
double scaled_time_s(const Device& device, const TrainingCurve& curve,
                     const ModelShape& curve_model, const ModelShape& model, double micro_batch,
                     std::int64_t seq_len) {
  if (seq_len == 0) {
    const double samples = micro_batch * forward_flops(model, 0).value() /
                           forward_flops(curve_model, curve.seq_len).value();
    return curve_time_s(device, curve, samples);
  }
  const double tokens = micro_batch * static_cast<double>(seq_len);
  return curve_time_s(device, curve, tokens / static_cast<double>(curve.seq_len)) *
         flops_per_token(model, seq_len) / flops_per_token(curve_model, curve.seq_len);
}

struct Estimate {
  double seconds;
  std::vector<NumberRead> rests_on;
  bool extrapolated;
  Basis basis = Basis::rate;
  double micro_batch_doublings = 0, seq_len_doublings = 0;
  bool measured = false;  // this program timed the model, or blocks like its own
  // A measured point lies below the lower bound of launches: the program replays graphs or starts
  // fewer kernels.
  bool fused = false;
};

double doublings(double from, double to) { return std::abs(std::log2(to / from)); }

double doublings_to_nearest(const std::vector<double>& points, double at) {
  double least = doublings(points.front(), at);
  for (const double point : points) least = std::min(least, doublings(point, at));
  return least;
}

// How well a curve matches a model, from best to worst.
enum class CurveMatch { same, blocks, other_program, by_name, other_model, other_kind, none };

CurveMatch match(const TrainingCurve& curve, const ModelShape& model,
                 const std::string& implementation) {
  if (curve.seq_len == 0 && model.max_seq_len > 0)
    return CurveMatch::none;  // images have no tokens
  const ModelShape* shape = find_model_preset(curve.model);
  const bool same_program = curve.implementation == implementation;
  if (shape == nullptr)
    return same_program && curve.model == model.name && curve.seq_len <= model.max_seq_len
               ? CurveMatch::by_name
               : CurveMatch::none;
  const Likeness like = likeness(model, *shape);
  // The closest net of any program is used, since curves of other models are no evidence for
  // convolutions.
  const bool convolves = is_convolutional(model);
  if (convolves && like == Likeness::other)
    return curve.seq_len == 0 ? CurveMatch::other_model : CurveMatch::other_kind;
  if (!same_program)
    return convolves || like == Likeness::same ? CurveMatch::other_program : CurveMatch::none;
  if (like == Likeness::same) return CurveMatch::same;
  return like == Likeness::blocks ? CurveMatch::blocks : CurveMatch::other_model;
}

struct Curves {
  CurveMatch match = CurveMatch::none;
  std::vector<const TrainingCurve*> of;  // curves of one model and program, ordered by length
};

// Returns the curves that match the model best. If they belong to several models or programs, only
// those of the first are returned.
Curves curves_for(const Device& device, const ModelShape& model,
                  const std::string& implementation) {
  Curves best;
  for (const TrainingCurve& curve : device.training_curves) {
    const CurveMatch of_curve = match(curve, model, implementation);
    if (of_curve < best.match) best = {of_curve, {}};
    if (of_curve != best.match || of_curve == CurveMatch::none ||
        (!best.of.empty() && (curve.model != best.of.front()->model ||
                              curve.implementation != best.of.front()->implementation)))
      continue;
    best.of.push_back(&curve);
  }
  std::sort(best.of.begin(), best.of.end(),
            [](auto* a, auto* b) { return a->seq_len < b->seq_len; });
  return best;
}

// Adds the rates of a net's kernels: the 16-bit rates behind the curve, and those of fp32 if the
// run uses fp32.
void read_rates(const GpuRates& rates, MatrixFormat format, std::vector<NumberRead>& rests_on) {
  const auto read = [&](MatrixFormat of, const char* peak, const char* share) {
    rests_on.push_back({peak, rates.of(of).peak.provenance});
    rests_on.push_back({share, rates.of(of).share.provenance});
  };
  read(MatrixFormat::half, "matrix_peak", "matrix_share");
  if (format == MatrixFormat::single) read(format, "matrix_peak_single", "matrix_share_single");
  rests_on.push_back({"memory_rate", rates.memory.provenance});
  rests_on.push_back({"kernel_start", rates.kernel_start.provenance});
}

Basis basis_of(CurveMatch match) {
  if (match == CurveMatch::blocks) return Basis::blocks;
  const bool same = match == CurveMatch::same || match == CurveMatch::other_program;
  return same ? Basis::this_device : Basis::other_model;
}

std::optional<Estimate> from_curves(const Device& device, const ModelShape& model,
                                    const Program& program, double micro_batch,
                                    std::int64_t seq_len) {
  const auto [match, curves] = curves_for(device, model, program.name);
  if (curves.empty()) return std::nullopt;
  if (match == CurveMatch::other_kind && has_convolution_kernels(device, model))
    return std::nullopt;
  // A model without a preset has only a name, so its shape is assumed to be this model's.
  const ModelShape& curve_model =
      match == CurveMatch::by_name ? model : model_preset(curves.front()->model);
  const TrainingCurve* below = curves.front();
  const TrainingCurve* above = curves.back();
  for (const TrainingCurve* curve : curves) {
    if (curve->seq_len <= seq_len) below = curve;
    if (curve->seq_len >= seq_len) {
      above = curve;
      break;
    }
  }
  if (above->seq_len < below->seq_len) above = below;
  const bool by_kernels = has_convolution_kernels(device, model) &&
                          (match != CurveMatch::same || program.format != MatrixFormat::half);
  const double low =
      by_kernels ? scaled_by_kernels_s(device, *below, curve_model, model, micro_batch, program)
                 : scaled_time_s(device, *below, curve_model, model, micro_batch, seq_len);
  double seconds = low;
  std::vector<NumberRead> rests_on{{"forward_backward", below->provenance}};
  if (match == CurveMatch::by_name)
    rests_on.push_back(
        {"curve_by_name", {Kind::assumed, "a curve's model is this one, as both have one name"}});
  const auto read_shape = [&](const TrainingCurve& curve) {
    const TrainingCurve* shape = shape_of(curve, device);
    if (shape != nullptr && shape != &curve)
      rests_on.push_back({"fuller_curve", shape->provenance});
  };
  read_shape(*below);
  if (above != below && above->seq_len > seq_len) {
    const double high = scaled_time_s(device, *above, curve_model, model, micro_batch, seq_len);
    const double share = static_cast<double>(std::max<std::int64_t>(0, seq_len - below->seq_len)) /
                         static_cast<double>(above->seq_len - below->seq_len);
    seconds = low + (high - low) * share;
    rests_on.push_back({"longer_curve", above->provenance});
    read_shape(*above);
  }
  if (by_kernels) read_rates(*device.rates, program.format, rests_on);
  const Basis basis = by_kernels ? Basis::kernels : basis_of(match);
  const bool on_curve = basis == Basis::this_device && below->seq_len == seq_len &&
                        micro_batch >= below->micro_batch.front() &&
                        micro_batch <= below->micro_batch.back();
  Estimate estimate{seconds, std::move(rests_on), !on_curve};
  estimate.basis = basis;
  estimate.measured = match <= CurveMatch::blocks;
  const double shortest_s = below->micro_batch.front() / below->samples_per_s.front();
  estimate.fused = estimate.measured && shortest_s < unfused_launches(device, curve_model).s();
  if (seq_len == 0) return estimate;
  const auto length_from = [&](const TrainingCurve* curve) {
    return doublings(static_cast<double>(curve->seq_len), static_cast<double>(seq_len));
  };
  const TrainingCurve* nearest = length_from(above) < length_from(below) ? above : below;
  estimate.seq_len_doublings = length_from(nearest);
  estimate.micro_batch_doublings =
      doublings_to_nearest(nearest->micro_batch, micro_batch * static_cast<double>(seq_len) /
                                                     static_cast<double>(nearest->seq_len));
  return estimate;
}

// Returns the time of a net without any curve, kernel by kernel.
Estimate by_convolutions(const Device& device, const ModelShape& model, const Program& program,
                         double micro_batch) {
  Estimate estimate{kernels_s(model, program, micro_batch, *device.rates),
                    {{"forward_backward", {Kind::assumed, "kernels of convolutions and norms"}}},
                    true};
  read_rates(*device.rates, program.format, estimate.rests_on);
  estimate.basis = Basis::kernels;
  return estimate;
}

// Returns the FLOPs of a profiled block, which is one of BERT: four projections, two feed-forward
// products, scores and values.
double forward_flops(const LayerCurve& curve) {
  const auto h = static_cast<double>(curve.hidden), f = static_cast<double>(curve.ffn);
  const auto s = static_cast<double>(curve.seq_len);
  return 2 * s * (4 * h * h + 2 * h * f) + 4 * s * s * h;
}

// Returns whether the model's blocks equal the profiled ones. A block of the same width with gates,
// experts, adapters or fewer key-value heads has other products.
bool has_blocks_of(const ModelShape& model, const LayerCurve& curve) {
  if (curve.hidden != model.hidden || curve.heads != model.heads || curve.ffn != model.ffn ||
      model.experts > 0 || model.adapters || model.decoder || !model.pyramid.empty())
    return false;
  const double flops = forward_flops(curve);
  return std::abs(block_forward_flops(model, 0, curve.seq_len).value() - flops) < 1e-6 * flops;
}

std::optional<MicroBatchTime> from_layers(const Device& device, const ModelShape& model,
                                          double micro_batch, std::int64_t seq_len) {
  for (const LayerCurve& curve : device.layers) {
    if (curve.seq_len != seq_len || !has_blocks_of(model, curve)) continue;
    // Assumption: the part outside the blocks runs at the blocks' rate.
    const double outside =
        outside_forward_flops(model, seq_len) / block_forward_flops(model, 0, seq_len);
    const double blocks = static_cast<double>(model.layers) + outside;
    const bool inside =
        micro_batch >= curve.micro_batch.front() && micro_batch <= curve.micro_batch.back();
    return MicroBatchTime{
        Duration::microseconds(blocks *
                               interpolate(curve.micro_batch, curve.forward_us, micro_batch)),
        Duration::microseconds(blocks *
                               interpolate(curve.micro_batch, curve.backward_us, micro_batch)),
        {{"forward_backward", curve.provenance}},
        true,
        !inside,
        Basis::blocks,
        doublings_to_nearest(curve.micro_batch, micro_batch)};
  }
  return std::nullopt;
}

// Returns the highest rate of any measured block, forward and backward, in FLOP/s.
std::pair<double, Provenance> measured_rate(const Device& device) {
  std::pair<double, Provenance> best{0, {}};
  for (const LayerCurve& curve : device.layers) {
    const double forward = forward_flops(curve);
    for (std::size_t i = 0; i < curve.micro_batch.size(); ++i) {
      const double time_s = (curve.forward_us[i] + curve.backward_us[i]) * 1e-6;
      const double rate = 3 * forward * curve.micro_batch[i] / time_s;
      if (rate > best.first) best = {rate, curve.provenance};
    }
  }
  return best;
}

// Times that training reads or writes the activations that a convolutional net keeps: 18 tensors
// are moved for 2 kept ones (the outputs of convolution and ReLU) per convolution. Forward moves 6
// tensors (convolution, norm and ReLU read and write one each), backward 12 (ReLU 3, norm 5,
// gradients of input and weight 4).
constexpr double passes_over_activations = 9;

// Raises the time of a convolutional net without any curve to that of its memory traffic.
void bound_by_memory(const Device& device, const ModelShape& model, std::int64_t micro_batch,
                     Estimate& estimate) {
  if (!is_convolutional(model)) return;
  const Bytes moved = activation_bytes(model, micro_batch, 0, false) * passes_over_activations;
  const double least = (moved / device.copy_bandwidth.value).s();
  if (least <= estimate.seconds) return;
  estimate.seconds = least;
  estimate.rests_on = {
      {"forward_backward",
       {Kind::assumed, fmt::format("{} passes over the activations", passes_over_activations)}},
      {"memory_rate", device.copy_bandwidth.provenance}};
}

}  // namespace

MicroBatchTime micro_batch_time(const Device& device, const ModelShape& model,
                                const std::string& implementation, std::int64_t micro_batch,
                                std::int64_t seq_len, MatrixFormat format) {
  const auto batch = static_cast<double>(micro_batch);
  if (!device.rates) {
    if (const auto measured = from_layers(device, model, batch, seq_len)) return *measured;
  }
  const Program program{implementation, format};
  auto estimate = from_curves(device, model, program, batch, seq_len);
  if (!estimate && has_convolution_kernels(device, model))
    estimate = by_convolutions(device, model, program, batch);
  const bool without_curve = !estimate;
  if (!estimate && !device.layers.empty()) {
    const auto [rate, provenance] = measured_rate(device);
    estimate = {3 * batch * forward_flops(model, seq_len).value() / rate,
                {{"forward_backward", provenance}},
                true};
  }
  if (!estimate) {
    const double flops = 3 * batch * forward_flops(model, seq_len).value();
    estimate = {flops / (device.matrix_efficiency.value * device.peak_half.value.value()),
                {{"forward_backward",
                  {Kind::assumed,
                   fmt::format("{} of peak on {}", device.matrix_efficiency.value, device.name)}},
                 {"matrix_efficiency", device.matrix_efficiency.provenance},
                 {"matrix_peak", device.peak_half.provenance}},
                true};
  }
  if (without_curve) bound_by_memory(device, model, micro_batch, *estimate);
  const double least = estimate->fused ? 0 : unfused_launches(device, model).s();
  if (least > estimate->seconds) {
    // A bound by launches is as uncertain as a rate, since no held-out case measured the number of
    // kernels and the host's launch rate.
    estimate->basis = std::max(estimate->basis, Basis::rate);
    // If launches take more than twice the estimated time, the other numbers do not affect the
    // result.
    if (2 * estimate->seconds < least) estimate->rests_on.resize(1);
    estimate->rests_on.front().provenance = {
        Kind::assumed, fmt::format("the host starts {:.0f} kernels", launches_of(model))};
    estimate->rests_on.push_back({"framework_launch", device.framework_launch.provenance});
  }
  estimate->rests_on.push_back({"forward_share", device.forward_share.provenance});
  const double seconds = std::max(estimate->seconds, least);
  const double share = device.forward_share.value;
  return {Duration::seconds(seconds * share),
          Duration::seconds(seconds * (1 - share)),
          std::move(estimate->rests_on),
          estimate->measured,
          estimate->extrapolated,
          estimate->basis,
          estimate->micro_batch_doublings,
          estimate->seq_len_doublings};
}

bool is_curve_of(const TrainingCurve& curve, const ModelShape& model) {
  return match(curve, model, curve.implementation) < CurveMatch::other_model;
}

Duration unfused_launches(const Device& device, const ModelShape& model) {
  return Duration::seconds(launches_of(model) * device.framework_launch.value.s());
}

double measured_kernel_width(const KernelCurve& kernel, double elements) {
  if (kernel.spread_us.empty()) return held_out::this_machine.off;
  const double at = std::clamp(elements, kernel.elements.front(), kernel.elements.back());
  const double spread = interpolate(kernel.elements, kernel.spread_us, at) /
                        interpolate(kernel.elements, kernel.time_us, at);
  return std::hypot(held_out::this_machine.off, 1.22 * spread);
}

}  // namespace lambcast
