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
#include "models/training/price/slowest_rank.h"
#include "models/training/run/forecast.h"
#include "sim/base/error.h"
#include "validate/calibrate/calibrate.h"
#include "validate/program/level_fit.h"

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

// Forecast of a traced run.
struct TracedRun {
  TrainingPlan plan;
  StepForecast step;
  PartTimes parts;
  TimesByKind kernels{};  // relative times in all passes; zero if not priced by kernel

  double all() const { return kernels[0] + kernels[1] + kernels[2]; }
  double rest_us() const { return parts[PartGroup::compression] + parts[PartGroup::optimizer]; }
  // Returns the time of one kind in the step's passes.
  double passes_us(PieceKind kind) const {
    return parts[PartGroup::compute] * kernels[static_cast<std::size_t>(kind)] / all();
  }
};

TracedRun forecast_of(const SourceFigure& figure) {
  Catalog catalog(std::make_shared<DescriptionTexts>(figure.texts));
  TracedRun run{resolve(figure.what_if, catalog).training, {}, {}};
  CollectiveCosts costs;
  run.step = forecast_alone(run.plan, costs).steps.front();
  run.parts = part_times(run.step);
  TrainingPlan whole = run.plan;
  if (!whole.parallelism) whole.parallelism = undivided(whole);
  if (whole.parallelism)
    run.kernels = times_by_kind(computation_of(whole, whole.seq_len), whole.model->expert_layers,
                                rates_of_slowest(whole, 1));
  return run;
}

double alone_us(const TracedStep& step, KernelKind kind) {
  return step.alone_us[static_cast<std::size_t>(kind)];
}

}  // namespace

KindLevels kind_levels(const JobTrace& trace, const SourceFigure& figure) {
  ProgramLevel unmeasured{"other", "half", {1, {}}};
  const SourceFigure plain = with_program({figure}, unmeasured).front();
  const TracedRun run = forecast_of(plain);
  if (!(run.all() > 0) || !priced_as(run.plan)) return {};
  const TracedStep step = trace.median();
  const double measured[] = {
      alone_us(step, KernelKind::products), alone_us(step, KernelKind::attention),
      alone_us(step, KernelKind::other) + alone_us(step, KernelKind::copies) - run.rest_us()};
  double levels[3], all_measured = 0, all_forecast = 0;
  for (std::size_t kind = 0; kind < piece_kinds; ++kind) {
    const double forecast = run.passes_us(static_cast<PieceKind>(kind));
    if (!(measured[kind] > 0) || !(forecast > 0)) return {};
    levels[kind] = measured[kind] / forecast;
    all_measured += measured[kind];
    all_forecast += forecast;
  }
  const double mean = all_measured / all_forecast;
  return {levels[0] / mean, levels[1] / mean, levels[2] / mean};
}

KindLevels median_of(std::vector<KindLevels> levels) {
  std::erase(levels, KindLevels());
  if (levels.empty()) return {};
  const auto middle = [&](double KindLevels::*kind) {
    std::vector<double> values;
    for (const KindLevels& of : levels) values.push_back(of.*kind);
    return validate::quantile(std::move(values), 0.5);
  };
  return {middle(&KindLevels::products), middle(&KindLevels::attention),
          middle(&KindLevels::element_wise)};
}

std::string trace_report(const JobTrace& trace, const SourceFigure& figure) {
  const TracedRun run = forecast_of(figure);
  check_gpu(trace, run.plan.device->name, figure.name);
  const bool by_kind = run.all() > 0;
  const auto part = [&](PieceKind kind, double other_us = 0) -> std::optional<double> {
    if (!by_kind) return std::nullopt;
    return run.passes_us(kind) + other_us;
  };
  const TracedStep step = trace.median();
  std::vector<TracePart> parts{
      {"products", alone_us(step, KernelKind::products), part(PieceKind::product)},
      {"attention", alone_us(step, KernelKind::attention), part(PieceKind::attention)},
      {"element-wise and the rest",
       alone_us(step, KernelKind::other) + alone_us(step, KernelKind::copies),
       part(PieceKind::memory, run.rest_us())},
      {"exposed communication", step.exposed_us, run.parts[PartGroup::wire]},
      {"gaps", step.idle_us, run.parts[PartGroup::bubble]}};
  if (!by_kind)
    parts.push_back(
        {"computing, all of it", step.computing_us, run.parts[PartGroup::compute] + run.rest_us()});
  const double hidden_us =
      step.kernel_us[static_cast<std::size_t>(KernelKind::communication)] - step.exposed_us;
  return fmt::format("{}: {} step{}{}{}{}\n\n{:<28} {:>14} {:>14}\n", figure.name,
                     trace.steps.size(), trace.steps.size() == 1 ? "" : "s",
                     trace.left_out > 0 ? ", the first and the last left out" : "",
                     trace.gpus > 1 ? fmt::format(", the first of {} GPUs", trace.gpus) : "",
                     trace.truncated ? ", a truncated file" : "", "part of the step",
                     "measured (ms)", "forecast (ms)") +
         table_of(parts) + table_of({{"step", step.time_us, run.step.step_time_us}}) +
         fmt::format("Communication behind computing: {:.2f} ms measured.\n", hidden_us * 1e-3) +
         largest_of(parts) +
         (run.plan.device->rates
              ? products_report(trace.products, static_cast<int>(trace.steps.size()),
                                rates_of_slowest(run.plan, 1))
              : "") +
         collectives_report(trace.collectives, static_cast<int>(trace.steps.size()),
                            run.plan.cluster, run.plan.gpus);
}

}  // namespace lambcast
