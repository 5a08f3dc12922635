#include "models/training/run/error_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "models/training/price/measured_program.h"
#include "topologies/communication_key.h"

namespace lambcast {
namespace {

constexpr std::size_t implementations = kernels_count, operations = op_count, carriers = 3;

// Indices of sources: single sources, then one for each kernel implementation, and one for each
// collective.
constexpr std::size_t passes = 0, gradient_copies = 1, to_and_from_host = 2, exchange_kernels = 3;
constexpr std::size_t plain_kernels = 4, onebit_kernels = plain_kernels + implementations;
constexpr std::size_t collectives = onebit_kernels + implementations;
static_assert(collectives + carriers * operations == error_sources);

std::size_t of_call(const Call& call) {
  return collectives + static_cast<std::size_t>(call.backend) * operations +
         static_cast<std::size_t>(call.op);
}

// Returns the source of kernels. A 1-bit optimizer's update and compression are implemented alike,
// so they share one.
std::size_t of_kernels(OptimizerType optimizer, Kernels kernels, Category part) {
  const auto implementation = static_cast<std::size_t>(kernels);
  if (is_onebit(optimizer)) return onebit_kernels + implementation;
  return part == Category::optimizer ? plain_kernels + implementation : exchange_kernels;
}

std::size_t source_of(const PlanOp& op, OptimizerType optimizer, Kernels kernels) {
  return std::visit(
      [&](const auto& work) -> std::size_t {
        using Of = std::decay_t<decltype(work)>;
        if constexpr (std::is_same_v<Of, Call>) return of_call(work);
        if constexpr (std::is_same_v<Of, Slowdown>) return of_call(work.beside);
        if constexpr (std::is_same_v<Of, HostCopy> || std::is_same_v<Of, HostUpdate>)
          return to_and_from_host;
        if constexpr (std::is_same_v<Of, MemoryWork>) return gradient_copies;
        if constexpr (std::is_same_v<Of, KernelWork> || std::is_same_v<Of, ProductWork>)
          return of_kernels(optimizer, kernels, op.part);
        return passes;
      },
      op.work);
}

Interval ends_of(const Price& price) { return interval_of(price.time, price.wires, price.compute); }

bool same_tables(const Calibration* a, const Calibration* b) {
  if (a == nullptr || b == nullptr) return a == b;
  Calibration other = *b;
  other.preset = a->preset;
  return *a == other && same_tables(a->preset.get(), b->preset.get());
}

// Whether both clusters' collectives depend on the same tables and constants (which may have been
// read at different times), except for the rates of their NICs.
bool alike_but_for_nics(const Cluster& a, const Cluster& b) {
  if (!same_tables(a.calibration ? &*a.calibration : nullptr,
                   b.calibration ? &*b.calibration : nullptr))
    return false;
  Cluster other = b;
  other.calibration = a.calibration;
  other.departure = a.departure;
  other.nic_nominal = a.nic_nominal;
  other.nic_bandwidth = a.nic_bandwidth;
  other.nic_limit = a.nic_limit;
  // Ignores the share of the NIC's rate that a library reaches, which depends on the description.
  other.nccl.nic_efficiency = a.nccl.nic_efficiency;
  other.mpi.nic_efficiency = a.mpi.nic_efficiency;
  return same_communication(a, other);
}

}  // namespace

void TimeAtEnds::add(const TimeAtEnds& step, double times) {
  s += times * step.s;
  for (std::size_t i = 0; i < error_sources; ++i) {
    at[i].low_s += times * step.at[i].low_s;
    at[i].high_s += times * step.at[i].high_s;
  }
}

TimeAtEnds time_at_ends(const StepRun& step, OptimizerType optimizer, Kernels kernels) {
  TimeAtEnds time;
  time.s = step.metrics.step_time.s();
  time.at.fill({time.s, time.s});
  // In a serial timeline the step changes by the sum of the changes of its operations.
  const bool serial = in_a_row(step.execution.timeline);
  std::array<std::vector<OpId>, error_sources> sources;
  for (OpId op = 0; op < step.prices.size(); ++op) {
    const std::size_t source = source_of(step.plan.ops[op], optimizer, kernels);
    sources[source].push_back(op);
    if (!serial) continue;
    const Interval ends = ends_of(step.prices[op]);
    time.at[source].low_s += (ends.low - step.prices[op].time).s();
    time.at[source].high_s += (ends.high - step.prices[op].time).s();
  }
  if (serial) return time;
  StepInStreams streams(step.plan, step.prices);
  const Duration expected = streams.lasts();
  for (std::size_t source = 0; source < error_sources; ++source) {
    if (sources[source].empty()) continue;
    const auto change_at = [&](Duration Interval::*end) {
      for (const OpId op : sources[source]) streams.set(op, ends_of(step.prices[op]).*end);
      return streams.lasts().s() - expected.s();
    };
    time.at[source].low_s += change_at(&Interval::low);
    time.at[source].high_s += change_at(&Interval::high);
    for (const OpId op : sources[source]) streams.set(op, step.prices[op].time);
  }
  return time;
}

ErrorSources common_sources(const TrainingPlan& a, const TrainingPlan& b) {
  const Cluster &one = *a.cluster, &other = *b.cluster;
  const bool kernels = a.device == b.device && one.stack == other.stack;
  const bool same_program = framework_of_run(a) == framework_of_run(b);
  const bool copies =
      kernels && one.host_copy == other.host_copy && one.host_link == other.host_link;
  const bool wires = alike_but_for_nics(one, other);
  ErrorSources common;
  for (std::size_t i = 0; i < error_sources; ++i)
    common[i] = i == passes             ? kernels && same_program
                : i == to_and_from_host ? copies
                : i < collectives       ? kernels
                                        : wires;
  return common;
}

RatioInterval ratio_of(const TimeAtEnds& a, const TimeAtEnds& b, const ErrorSources& common) {
  RatioInterval ratio;
  ratio.value = a.s / b.s;
  double below = 0, above = 0;
  const auto add = [&](std::size_t source, double one, double other) {
    const double low = std::min({one, other, ratio.value});
    const double high = std::max({one, other, ratio.value});
    if (low == high) return;  // most sources occur in neither run
    below += std::pow(std::log(low / ratio.value), 2);
    above += std::pow(std::log(high / ratio.value), 2);
    if (high > low) ratio.shares.push_back({source, low, high});
  };
  for (std::size_t i = 0; i < error_sources; ++i) {
    if (common[i]) {
      add(i, a.at[i].low_s / b.at[i].low_s, a.at[i].high_s / b.at[i].high_s);
    } else {
      add(i, a.at[i].low_s / b.s, a.at[i].high_s / b.s);
      add(i, a.s / b.at[i].low_s, a.s / b.at[i].high_s);
    }
  }
  ratio.low = ratio.value * std::exp(-std::sqrt(below));
  ratio.high = ratio.value * std::exp(std::sqrt(above));
  std::ranges::stable_sort(ratio.shares, std::ranges::greater(),
                           [](const ErrorShare& share) { return share.high / share.low; });
  return ratio;
}

ErrorOf what_errs(std::size_t source) {
  if (source == passes) return ErrorOf::passes;
  if (source == gradient_copies) return ErrorOf::copies;
  if (source == exchange_kernels) return ErrorOf::exchange_kernels;
  if (source == to_and_from_host || source >= collectives) return ErrorOf::wires;
  return source < onebit_kernels ? ErrorOf::plain_kernels : ErrorOf::onebit_kernels;
}

std::string name_of_source(std::size_t source) {
  if (source == passes) return "the model's forward and backward passes";
  if (source == gradient_copies) return "copies in the GPU's memory";
  if (source == to_and_from_host) return "copies between GPU and host";
  if (source == exchange_kernels) return "the kernels of the gradients' exchange";
  if (source < onebit_kernels)
    return fmt::format("{} kernels of the plain optimizer",
                       in_words(static_cast<Kernels>(source - plain_kernels)));
  if (source < collectives)
    return fmt::format("{} kernels of the 1-bit optimizer",
                       in_words(static_cast<Kernels>(source - onebit_kernels)));
  const std::size_t call = source - collectives;
  const BackendTraits& by = backend_traits()[call / operations];
  return fmt::format("{} over {}{}", name_of(static_cast<Op>(call % operations)), by.word,
                     by.cuda_aware ? " (cuda_aware)" : "");
}

std::optional<MeasuredCall> measured_call(std::size_t source) {
  if (source < collectives) return std::nullopt;
  const std::size_t call = source - collectives;
  return MeasuredCall{static_cast<Backend>(call / operations), static_cast<Op>(call % operations)};
}

std::string measurement_of(std::size_t source) {
  if (source == passes)
    return "a step of this model on one of its GPUs (lambcast profile times its layers)";
  if (source < collectives) return name_of_source(source) + " (lambcast profile on its GPU)";
  const std::size_t call = source - collectives;
  const std::string_view backend = backend_traits()[call / operations].word;
  return fmt::format("{} (lambcast measure --backend {} --op {}{}, then lambcast calibrate)",
                     name_of_source(source), backend, name_of(static_cast<Op>(call % operations)),
                     backend == "nccl" ? " or a table of nccl-tests" : "");
}

}  // namespace lambcast
