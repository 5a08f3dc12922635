#include "models/training/run/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "models/training/memory/memory_remedy.h"
#include "models/training/memory/tight_memory.h"
#include "models/training/plan/buffers.h"
#include "models/training/plan/compressed_allreduce.h"
#include "models/training/price/backend_limit.h"
#include "models/training/price/gpu_way_limit.h"
#include "models/training/price/one_hot_dispatch.h"
#include "models/training/price/passage.h"
#include "models/training/price/shared_network.h"
#include "models/training/run/compressed_share.h"
#include "models/training/run/known_runs.h"
#include "models/training/run/plugin_tuner.h"
#include "models/training/run/stream_limit.h"
#include "sim/base/ratio.h"
#include "topologies/nccl_machine.h"

namespace lambcast {
namespace {

constexpr StepFigure figures[] = {
    {"step_time_us", &StepForecast::step_time_us,
     [](const StepMetrics& s) { return s.step_time.us(); }},
    {"forward_us", &StepForecast::forward_us, [](const StepMetrics& s) { return s.forward.us(); }},
    {"backward_us", &StepForecast::backward_us,
     [](const StepMetrics& s) { return s.backward.us(); }},
    {"gradient_comm_us", &StepForecast::gradient_comm_us,
     [](const StepMetrics& s) { return s.gradient_comm.us(); }},
    {"exposed_comm_us", &StepForecast::exposed_comm_us,
     [](const StepMetrics& s) { return s.exposed_comm.us(); }},
    {"compress_us", &StepForecast::compress_us,
     [](const StepMetrics& s) { return s.compress.us(); }},
    {"decompress_us", &StepForecast::decompress_us,
     [](const StepMetrics& s) { return s.decompress.us(); }},
    {"optimizer_us", &StepForecast::optimizer_us,
     [](const StepMetrics& s) { return s.optimizer.us(); }},
    {"bubble_us", &StepForecast::bubble_us, [](const StepMetrics& s) { return s.bubble.us(); }},
    {"wire_bytes_per_gpu", &StepForecast::wire_bytes_per_gpu,
     [](const StepMetrics& s) { return s.wire_bytes_per_gpu.value(); }},
    {"inter_node_bytes_per_node", &StepForecast::inter_node_bytes_per_node,
     [](const StepMetrics& s) { return s.network_bytes_per_node.value(); }},
    {"num_collectives", &StepForecast::num_collectives,
     [](const StepMetrics& s) { return s.num_collectives; }},
    {"samples_per_s", &StepForecast::samples_per_s, nullptr},
    {"tokens_per_s", &StepForecast::tokens_per_s, nullptr},
    {"tflops_per_gpu", &StepForecast::tflops_per_gpu, nullptr},
};

// The figure of each part of a step, such as "forward_us". A part without a figure does not
// compile.
constexpr auto figures_of_parts = [] {
  std::array<double StepForecast::*, step_parts.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = std::ranges::find_if(figures, [&](const StepFigure& figure) {
               return figure.name.starts_with(step_parts[i]) &&
                      figure.name.substr(step_parts[i].size()) == "_us";
             })->value;
  return all;
}();

// Adds `step`, multiplied by the number of steps of `like`, to the sums of its kind.
void add_step(StepForecast& sum, const StepMetrics& step, const TrainingPlan& training,
              const DistinctStep& like) {
  const auto steps = static_cast<double>(like.steps);
  const std::int64_t batch = batch_in(training.batch, like).train;
  sum.samples_per_s += steps * static_cast<double>(batch);
  sum.kind = counted_as(like.kind);
  sum.steps += like.steps;
  for (const StepFigure& figure : figures)
    if (figure.of_step != nullptr) sum.*figure.value += steps * figure.of_step(step);
  sum.step_time_low_us += steps * step.step_time_low.us();
  sum.step_time_high_us += steps * step.step_time_high.us();
  sum.coverage = sum.coverage && step.coverage
                     ? std::optional(std::min(*sum.coverage, *step.coverage))
                     : std::nullopt;
  sum.calibrated &= step.calibrated;
  if (step.stand_in && (!sum.stand_in || sum.stand_in->growth < step.stand_in->growth))
    sum.stand_in = step.stand_in;
  sum.basis = std::max(sum.basis, step.basis);
  sum.tokens_per_s += steps * static_cast<double>(batch * std::max<std::int64_t>(1, like.seq_len));
  sum.tflops_per_gpu += steps * static_cast<double>(batch) / training.gpus *
                        training_flops(*training.model, like.seq_len).value() * 1e-12;
}

// Converts sums over steps into means per step and rates.
void finish_step(StepForecast& step) {
  const double time_s = step.step_time_us * 1e-6;
  const auto steps = static_cast<double>(step.steps);
  step.samples_per_s /= time_s;
  step.tokens_per_s /= time_s;
  step.tflops_per_gpu /= time_s;
  for (const StepFigure& figure : figures)
    if (figure.of_step != nullptr) step.*figure.value /= steps;
  step.step_time_low_us /= steps;
  step.step_time_high_us /= steps;
}

// Runs a step. If the step exceeds the range of the clock, the error names its settings.
const KnownStep& step_of(const TrainingPlan& training, KnownRun& run, const DistinctStep& step,
                         CollectiveCosts& costs, Sources sources) {
  try {
    return run.step(step, costs, sources);
  } catch (const TooLong& error) {
    const Batch now = batch_in(training.batch, step);
    throw Error(
        error.code(),
        fmt::format("cannot simulate a {} step (batch {} = micro batch {} x accumulation {} x {} "
                    "replicas, {}): {}",
                    name_of(step.kind), now.train, now.micro, now.gas,
                    now.train / (now.micro * now.gas), training.device->name, error.what()));
  }
}

// Adds the run to `time` and, if given, the sources of its steps to `sources`.
std::vector<StepForecast> forecast_steps(const TrainingPlan& training, KnownRun& run,
                                         CollectiveCosts& costs, TimeAtEnds& time,
                                         RunSources* sources = nullptr) {
  std::vector<StepForecast> kinds;
  for (const DistinctStep& distinct : distinct_steps(training)) {
    auto sum = std::find_if(kinds.begin(), kinds.end(), [&](const StepForecast& of) {
      return of.kind == counted_as(distinct.kind);
    });
    if (sum == kinds.end()) sum = kinds.insert(kinds.end(), StepForecast());
    const KnownStep& step = step_of(training, run, distinct, costs,
                                    sources != nullptr ? Sources::noted : Sources::left_out);
    const auto steps = static_cast<double>(distinct.steps);
    add_step(*sum, step.metrics, training, distinct);
    time.add(step.time, steps);
    if (sources != nullptr) sources->add(step.sources, steps);
  }
  for (StepForecast& kind : kinds) finish_step(kind);
  return kinds;
}

RunForecast sum_up(const TrainingPlan& training, const std::vector<StepForecast>& steps) {
  RunForecast run;
  run.steps = training.steps;
  for (const StepForecast& step : steps) {
    const double seconds = 1e-6 * static_cast<double>(step.steps);
    run.time_s += step.step_time_us * 1e-6 * static_cast<double>(step.steps);
    run.time_low_s += step.step_time_low_us * seconds;
    run.time_high_s += step.step_time_high_us * seconds;
    run.wire_bytes_per_gpu += step.wire_bytes_per_gpu * static_cast<double>(step.steps);
  }
  run.samples_per_s = static_cast<double>(samples_of(training)) / run.time_s;
  run.gpu_hours = run.time_s / 3600 * training.gpus;
  if (training.cluster->usd_per_gpu_hour)
    run.cost_usd = run.gpu_hours * training.cluster->usd_per_gpu_hour->value;
  return run;
}

// Least packets of queue per flow at which no incast is reported: exchanges rarely waited for TCP's
// timer there (validate/measured/incast.csv).
constexpr double roomy = 4;

std::optional<Finding> incast(const TrainingPlan& training) {
  const Cluster& cluster = *training.cluster;
  if (!cluster.port_queue) return std::nullopt;
  const int nics = std::min(nics_in_use(cluster, training.gpus_per_node), training.gpus_per_node);
  const double flows =
      flows_at_port({levels_of(training.exchange, all_ranks(training)).between, nics},
                    library_of(cluster, training.backend()).connections);
  const double packets = cluster.port_queue->depth.value / full_packet;
  if (packets >= roomy * flows) return std::nullopt;
  return Finding{
      Severity::warning, "incast",
      fmt::format("in the exchange {:.0f} TCP flows meet at a port of the switch that holds {:.0f} "
                  "packets: some wait {} for the retransmission timer, {:.0f}% of exchanges by "
                  "this forecast{}",
                  flows, packets, to_text(cluster.port_queue->rto_min.value),
                  100 * stalled_share(cluster.port_queue->depth.value, flows),
                  packets > flows ? ", which is low here: up to half did when measured" : "")};
}

// Warns if a measured time lies outside the interval of the passes. Shorter sequence lengths of a
// curriculum are not checked.
std::optional<Finding> sources_disagree(const TrainingPlan& training) {
  const auto is_of_model = [&](const TrainingCurve& curve) {
    return is_curve_of(curve, *training.model);
  };
  if (training.parallelism || std::ranges::none_of(training.device->training_curves, is_of_model))
    return std::nullopt;
  CollectiveCosts costs;
  const Passage here = passage(training, training.seq_len, costs);
  const std::optional<OtherTiming>& other = here.contradicted_by;
  if (!other) return std::nullopt;
  return Finding{
      Severity::warning, "sources-disagree",
      fmt::format("forward and backward take {} here, where {} took {} with {} on {} "
                  "({}): the interval reaches that time too",
                  to_text(here.forward + here.backward), other->program, to_text(other->passes),
                  training.model->name, training.device->name, other->provenance.source)};
}

std::optional<Finding> find_idle_sharp(const TrainingPlan& training) {
  if (training.nodes() == 1 || is_mpi(training.backend())) return std::nullopt;
  const std::string idle = why_sharp_is_idle(*training.cluster, training.gpus_per_node);
  if (idle.empty()) return std::nullopt;
  return Finding{Severity::warning, "sharp-idle", "nccl.sharp has no effect: " + idle};
}

// Adds notes on limits of the network and on choices of the library.
void add_network_findings(const TrainingPlan& training, const Forecast& forecast,
                          std::vector<Finding>& findings) {
  const Cluster& cluster = *training.cluster;
  const int nodes = training.nodes();
  const auto tipping = forecast.sources.tipping();
  for (const auto& finding :
       {find_stream_limit(cluster, nodes), find_gpu_way_limit(cluster, nodes),
        find_above_name_plate(cluster), find_idle_sharp(training), find_one_hot_dispatch(training),
        find_plugin_tuner(cluster, nodes), find_backend_that_fails(training),
        tipping ? find_tip(*tipping) : std::nullopt})
    if (finding) findings.push_back(*finding);
}

}  // namespace

std::span<const StepFigure> step_figures() { return figures; }

PartTimes part_times(const StepForecast& step) {
  PartTimes times;
  for (std::size_t i = 0; i < parts_of_step.size(); ++i)
    times[parts_of_step[i].group] += step.*figures_of_parts[i];
  return times;
}

OptimizerType baseline_of(OptimizerType type) { return model_of(type).plain; }

TrainingPlan plain_run(const TrainingPlan& training) {
  TrainingPlan plain = training;
  plain.exchange = {};
  if (plain.parallelism && is_hierarchical(training.exchange))
    plain.parallelism->quantized_gradients = false;
  plain.recipe.optimizer = baseline_of(training.optimizer());
  // A 1-bit optimizer with the fused kernels is compared with the baseline on the program's own
  // kernels.
  if (plain.optimizer() != training.optimizer())
    plain.kernels =
        plain.framework_kernels.value_or(stack_kernels(plain.cluster->stack, plain.optimizer()));
  return plain;
}

Forecast forecast_alone(const TrainingPlan& training, CollectiveCosts& costs) {
  Forecast result;
  KnownRun& run = known_runs(costs).of(training);
  result.steps = forecast_steps(training, run, costs, result.time, &result.sources);
  result.run = sum_up(training, result.steps);
  result.memory = run.memory();
  result.run.baseline_optimizer = name_of(baseline_of(training.optimizer()));
  return result;
}

TimeAtEnds run_time(const TrainingPlan& training, CollectiveCosts& costs) {
  TimeAtEnds time;
  KnownRun& run = known_runs(costs).of(training);
  for (const DistinctStep& step : distinct_steps(training))
    time.add(step_of(training, run, step, costs, Sources::left_out).time,
             static_cast<double>(step.steps));
  return time;
}

Forecast forecast(const TrainingPlan& training, CollectiveCosts& costs) {
  Forecast result = forecast_alone(training, costs);
  if (baseline_of(training.optimizer()) == training.optimizer() && training.exchange == Exchange{})
    return result;
  const TrainingPlan plain = plain_run(training);
  Forecast other;
  other.run = sum_up(plain, forecast_steps(plain, known_runs(costs).of(plain), costs, other.time));
  compare_with(other, result.run.baseline_optimizer, result);
  return result;
}

void compare_with(const Forecast& other, const std::string& name, Forecast& forecast) {
  RunForecast& run = forecast.run;
  forecast.plain_time = other.time;
  run.baseline_optimizer = name;
  run.speedup = ratio_of(other.time, forecast.time);
  run.speedup_vs_baseline = other.run.time_s / run.time_s;
  if (run.wire_bytes_per_gpu > 0)
    run.volume_reduction = other.run.wire_bytes_per_gpu / run.wire_bytes_per_gpu;
}

std::optional<Finding> collectives_apart(const Forecast& forecast) {
  std::optional<StandIn> stand_in;
  for (const StepForecast& step : forecast.steps)
    if (step.stand_in && (!stand_in || step.stand_in->growth > stand_in->growth))
      stand_in = step.stand_in;
  if (!stand_in) return std::nullopt;
  const std::string known =
      stand_in->gpus == 0
          ? "and no smaller number of copies could be tried"
          : fmt::format(
                "among {} GPUs sharing makes the step {:.3g} times as long, and the interval "
                "reaches that far",
                stand_in->gpus, stand_in->growth);
  return Finding{
      Severity::warning, "collectives-apart",
      "this step is too large for its collectives to share links in the flow model, so each "
      "runs as if alone; " +
          known};
}

std::vector<Finding> judge(const TrainingPlan& training, const Forecast& forecast) {
  std::vector<Finding> findings;
  const MemoryForecast& memory = forecast.memory;
  if (!fits_host(*training.cluster, memory))
    findings.push_back(
        {Severity::error, "out-of-host-memory",
         fmt::format("offloaded states and activations need {} of host memory a node, where {} has "
                     "{}: more nodes, or --offload-optimizer none, --offload-activations none",
                     to_text(memory.host), training.cluster->name,
                     to_text(*training.cluster->host_capacity))});
  if (memory.peak > training.device->memory_capacity) {
    findings.push_back(
        {Severity::error, "out-of-memory",
         fmt::format("needs {} a GPU where {} has {}: {}", to_text(memory.peak),
                     training.device->name, to_text(training.device->memory_capacity),
                     how_to_fit(training))});
  } else if (is_tight(memory, *training.device)) {
    findings.push_back(
        {Severity::warning, "memory-tight",
         fmt::format("needs {} to {} a GPU, forecast {}, where {} has {}: it may not fit",
                     to_text(memory.low()), to_text(memory.high()), to_text(memory.peak),
                     training.device->name, to_text(training.device->memory_capacity))});
  }
  if (const auto finding = collectives_apart(forecast)) findings.push_back(*finding);
  add_network_findings(training, forecast, findings);
  if (const auto finding = sources_disagree(training)) findings.push_back(*finding);
  const bool alone = training.gpus == 1;
  if (alone && (is_onebit(training.optimizer()) || training.exchange != Exchange{}))
    findings.push_back({Severity::warning, "nothing-to-compress",
                        fmt::format("one GPU sends nothing, so {} only adds work",
                                    is_onebit(training.optimizer())
                                        ? "a 1-bit optimizer"
                                        : "--exchange " + name_of(training.exchange))});
  if (!is_onebit(training.optimizer())) return findings;
  double padded = 0;
  const ExchangeLevels levels = levels_of(training.exchange, all_ranks(training));
  for (const std::int64_t buffer : compressed_buffers(training))
    padded += levels.shards * static_cast<double>(buffer);
  const double padding =
      padded * training.shards() / static_cast<double>(optimized_parameters(*training.model)) - 1;
  if (padding > 0.1) {
    findings.push_back(
        {Severity::warning, "padding-dominates",
         fmt::format("every buffer is padded to a multiple of n * lcm(n, 8) elements: at {} GPUs "
                     "{:.0f}% of what is compressed and sent is padding",
                     levels.between.ranks, 100 * padding / (1 + padding))});
  }
  if (const auto finding = incast(training)) findings.push_back(*finding);
  // A slowdown by compression is reported only if the whole interval of the speed-up is below 1.
  if (!alone && forecast.memory.fits && forecast.run.speedup && forecast.run.speedup->high < 1 &&
      compressed_share(forecast) >= least_compressed_share) {
    findings.push_back(
        {Severity::warning, "compression-loses",
         fmt::format("{} takes {} as {} here: what it compresses and computes costs more than the "
                     "bytes it saves",
                     name_of(training.optimizer()), times_as_long(1 / forecast.run.speedup->value),
                     forecast.run.baseline_optimizer)});
  }
  return findings;
}

}  // namespace lambcast
