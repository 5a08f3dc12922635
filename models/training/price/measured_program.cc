#include "models/training/price/measured_program.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "models/device/rates_interval.h"
#include "models/training/price/own_scale.h"
#include "models/training/price/slowest_rank.h"

namespace lambcast {
namespace {

constexpr double claimed = 0.9;
constexpr double ends_of_90_percent = 1.645;  // standard deviations of a normal distribution

MatrixFormat format_of_products(const TrainingPlan& training) {
  if (training.parallelism) return training.parallelism->format;
  return training.recipe.precision.is_half() ? MatrixFormat::half : MatrixFormat::single;
}

bool has_assumed_share(const Device& device, MatrixFormat format) {
  return device.rates->of(format).share.provenance.kind == Kind::assumed;
}

// Whether the share of the peak is only assumed. A number given by --set replaces a preset's share
// without changing the evidence for it.
bool lacks_share(const Device& device, MatrixFormat format) {
  if (!has_assumed_share(device, format)) return false;
  if (!device.rates->of(format).share.provenance.source.starts_with("--set")) return true;
  const std::vector<std::string> presets = device_names();
  return std::ranges::find(presets, device.name) != presets.end() &&
         has_assumed_share(load_device(device.name), format);
}

// Standard deviation of the drift from the nearest measured number of GPUs to `gpus`.
double drift(const ProgramLevel& level, int gpus) {
  if (level.fewest_gpus == 0) return 0;  // the description gives no number of GPUs
  const int nearest = std::clamp(gpus, level.fewest_gpus, level.most_gpus);
  return growth_spread * std::abs(expected_largest_of(gpus) - expected_largest_of(nearest));
}

ComputeWidth width_by_level(const TrainingPlan& training) {
  const ProgramLevel& level = *training.program;
  const double of_run =
      std::hypot(level.spread > 0 ? level.spread : run_spread, drift(level, training.gpus));
  return {std::hypot(std::log(level.high / level.low) / 2, ends_of_90_percent * of_run), claimed};
}

}  // namespace

double level_of(const TrainingPlan& training) {
  return training.program ? training.program->level.value : 1;
}

ComputeWidth width_of_passes(const TrainingPlan& training, const ComputeWidth& otherwise,
                             bool level_known) {
  if (training.program) return width_by_level(training);
  const ProgramPrior& prior = training.prior;
  if (level_known || prior.programs == 0) return otherwise;
  return {std::hypot(otherwise.log, student_95(prior.programs) * prior.spread), otherwise.coverage};
}

ComputeWidth width_of_passes(const TrainingPlan& training) {
  if (training.program) return width_by_level(training);
  const GpuRates& rates = *training.device->rates;
  const bool assumed = lacks_share(*training.device, format_of_products(training));
  const ComputeWidth known = rates_width(rates.held_out, {.share = assumed});
  ComputeWidth width =
      rates_width(rates.held_out, {training.prior.spread, training.prior.programs, assumed});
  width.log = width_near_own(
      known.log,
      distance_from_own(training.cluster->stack.compute_scale.value, own_scale_of(training)),
      width.log);
  return width;
}

std::optional<double> own_scale_of(const TrainingPlan& training) {
  const StackSpec& stack = training.cluster->stack;
  const bool own = stack.scale_program.empty() || stack.scale_program == framework_of_run(training);
  return own ? stack.own_compute_scale : std::nullopt;
}

double variance_of_kernels(const TrainingPlan& training) {
  const std::optional<GpuRates>& rates = training.device->rates;
  return kernel_variance(rates && rates->held_out ? *rates->held_out : HeldOut{0, 0});
}

std::string_view framework_of_run(const TrainingPlan& training) {
  return name_of(training.parallelism ? training.parallelism->framework.name : training.framework);
}

}  // namespace lambcast
