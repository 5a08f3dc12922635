#include "validate/program/trace_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>

#include "experiments/scenario/scenario.h"
#include "models/device/block_time.h"
#include "models/training/plan/layout_contents.h"
#include "models/training/price/block_kernels.h"
#include "models/training/price/passage.h"
#include "models/training/run/forecast.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

// Returns the GPU model contained in a name, "h100" of "NVIDIA H100 80GB HBM3"; empty for unknown
// ones.
std::string gpu_model(std::string_view name) {
  std::string lower(name), found;
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const std::string& preset : device_names()) {
    const std::string model = preset.substr(0, preset.find('-'));
    if (model.size() > found.size() && lower.find(model) != lower.npos) found = model;
  }
  return found;
}

void check_gpu(const JobTrace& trace, const std::string& device, const std::string& file) {
  const std::string traced = gpu_model(trace.gpu), ours = gpu_model(device);
  if (traced.empty() || ours.empty() || traced == ours) return;
  fail_input({file, 0, "--job-trace"},
             fmt::format("is a trace of {}, and the cluster has {}", trace.gpu, device),
             "--cluster or --device with the GPU of the trace");
}

constexpr std::size_t piece_kinds = 3;  // the first values of PieceKind
using TimesByKind = std::array<double, piece_kinds>;

void add(TimesByKind& times, const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces)
    times[static_cast<std::size_t>(piece.kind)] += piece.duration.us();
}

// Returns the kernel times of one micro batch through the whole model, forward and backward.
TimesByKind times_by_kind(const PipelinePlan& plan, const std::vector<bool>& expert_layers,
                          const GpuRates& rates) {
  TimesByKind times{};
  const std::vector<BlockKinds> kinds = kinds_of(plan, rates);
  for (const parallel::ChunkContent& content : plan.chunks) {
    for (std::size_t stack = 0; stack < kinds.size(); ++stack) {
      const parallel::ChunkContent part = part_of(content, plan, stack);
      for (int i = part.first_layer; i < part.first_layer + part.layers; ++i) {
        const auto layer = static_cast<std::size_t>(i);
        const bool experts =
            kinds[stack].experts && layer < expert_layers.size() && expert_layers[layer];
        const BlockKernels& block = experts ? *kinds[stack].experts : kinds[stack].dense;
        add(times, block.forward);
        add(times, block.backward);
      }
    }
    if (content.embedding) {
      add(times, embedding_forward(plan.block, rates));
      add(times, embedding_backward(plan.block, rates));
    }
    if (content.head) {
      add(times, head_forward(plan.block, rates));
      add(times, head_backward(plan.block, rates));
    }
  }
  return times;
}

struct TracePart {
  std::string_view name;
  double measured_us = 0;
  std::optional<double> forecast_us;
};

std::string table_of(const std::vector<TracePart>& parts) {
  std::string out;
  for (const TracePart& part : parts)
    out += fmt::format("{:<28} {:>14.2f} {:>14}\n", part.name, part.measured_us * 1e-3,
                       part.forecast_us ? fmt::format("{:.2f}", *part.forecast_us * 1e-3) : "-");
  return out;
}

std::string largest_of(const std::vector<TracePart>& parts) {
  const auto off = [](const TracePart& part) {
    return part.forecast_us ? std::abs(part.measured_us - *part.forecast_us) : 0;
  };
  const TracePart& worst = *std::ranges::max_element(parts, {}, off);
  return fmt::format("Largest disagreement: {}, {:.2f} ms measured and {:.2f} ms forecast.\n\n",
                     worst.name, worst.measured_us * 1e-3, *worst.forecast_us * 1e-3);
}

}  // namespace

std::string trace_report(const JobTrace& trace, const SourceFigure& figure) {
  Catalog catalog(std::make_shared<DescriptionTexts>(figure.texts));
  TrainingPlan run = resolve(figure.what_if, catalog).training;
  check_gpu(trace, run.device->name, figure.name);
  CollectiveCosts costs;
  const Forecast result = forecast_alone(run, costs);
  const PartTimes forecast = part_times(result.steps.front());
  const double passes_us = forecast[PartGroup::compute];
  const double rest_us = forecast[PartGroup::compression] + forecast[PartGroup::optimizer];
  if (!run.parallelism) run.parallelism = undivided(run);
  TimesByKind shares{};
  if (run.parallelism)
    shares = times_by_kind(computation_of(run, run.seq_len), run.model->expert_layers,
                           *run.device->rates);
  const double all_us = shares[0] + shares[1] + shares[2];
  const auto part = [&](PieceKind kind, double other_us = 0) -> std::optional<double> {
    if (!(all_us > 0)) return std::nullopt;
    return passes_us * shares[static_cast<std::size_t>(kind)] / all_us + other_us;
  };
  const TracedStep step = trace.median();
  const auto alone = [&](KernelKind kind) { return step.alone_us[static_cast<std::size_t>(kind)]; };
  std::vector<TracePart> parts{
      {"products", alone(KernelKind::products), part(PieceKind::product)},
      {"attention", alone(KernelKind::attention), part(PieceKind::attention)},
      {"element-wise and the rest", alone(KernelKind::other) + alone(KernelKind::copies),
       part(PieceKind::memory, rest_us)},
      {"exposed communication", step.exposed_us, forecast[PartGroup::wire]},
      {"gaps", step.idle_us, forecast[PartGroup::bubble]}};
  if (!(all_us > 0))
    parts.push_back({"computing, all of it", step.computing_us, passes_us + rest_us});
  const double hidden_us =
      step.kernel_us[static_cast<std::size_t>(KernelKind::communication)] - step.exposed_us;
  return fmt::format("{}: {} step{}{}{}{}\n\n{:<28} {:>14} {:>14}\n", figure.name,
                     trace.steps.size(), trace.steps.size() == 1 ? "" : "s",
                     trace.left_out > 0 ? ", the first and the last left out" : "",
                     trace.gpus > 1 ? fmt::format(", the first of {} GPUs", trace.gpus) : "",
                     trace.truncated ? ", a truncated file" : "", "part of the step",
                     "measured (ms)", "forecast (ms)") +
         table_of(parts) + table_of({{"step", step.time_us, result.steps.front().step_time_us}}) +
         fmt::format("Communication behind computing: {:.2f} ms measured.\n", hidden_us * 1e-3) +
         largest_of(parts);
}

}  // namespace lambcast
