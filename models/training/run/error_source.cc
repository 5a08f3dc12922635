#include "models/training/run/error_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "models/training/price/measured_program.h"
#include "topologies/common_error.h"
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

std::size_t of_call(const CallKind& kind) {
  return collectives + static_cast<std::size_t>(kind.backend) * operations +
         static_cast<std::size_t>(kind.op);
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
        if constexpr (std::is_same_v<Of, Call>) return of_call(call_kind(work));
        if constexpr (std::is_same_v<Of, Slowdown>) return of_call(call_kind(work.beside));
        if constexpr (std::is_same_v<Of, HostCopy> || std::is_same_v<Of, HostUpdate>)
          return to_and_from_host;
        if constexpr (std::is_same_v<Of, MemoryWork>) return gradient_copies;
        if constexpr (std::is_same_v<Of, KernelWork> || std::is_same_v<Of, ProductWork>)
          return of_kernels(optimizer, kernels, op.part);
        return passes;
      },
      op.work);
}

// An operation that a source moves, the ends of its time, and the part of this error that other
// collectives have in common.
struct Moved {
  OpId op;
  Interval ends;
  double c = 0;
};
using MovedBySource = std::array<std::vector<Moved>, error_sources>;

MovedBySource moved_by_source(const StepRun& step, const TrainingPlan& training) {
  MovedBySource moved;
  for (OpId op = 0; op < step.prices.size(); ++op) {
    const Price& price = step.prices[op];
    const auto& work = step.plan.ops[op].work;
    if (std::holds_alternative<StageWork>(work)) {
      moved[passes].push_back({op, price.compute});
      for (const WiresOfKind& of : price.wires_by_kind)
        moved[of_call(of.kind)].push_back({op, of.wires, of.c});
      continue;
    }
    const Call* call = std::get_if<Call>(&work);
    if (const Slowdown* slowdown = std::get_if<Slowdown>(&work)) call = &slowdown->beside;
    const double c =
        call == nullptr ? 0 : common_error(*training.cluster, call->backend, call->op, call->group);
    moved[source_of(step.plan.ops[op], training.optimizer(), training.kernels)].push_back(
        {op, interval_of(price.time, price.wires, price.compute), c});
  }
  return moved;
}

// Returns the mean of c over the operations of a source, weighted with the widths of their
// intervals.
double common_share(const std::vector<Moved>& moved) {
  double common = 0, all = 0;
  for (const Moved& of : moved) {
    const double width = (of.ends.high - of.ends.low).s();
    common += width * of.c;
    all += width;
  }
  return all > 0 ? common / all : 0;
}

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
    at[i].common_s += times * step.at[i].common_s;
  }
}

TimeAtEnds time_at_ends(const StepRun& step, const TrainingPlan& training) {
  TimeAtEnds time;
  time.s = step.metrics.step_time.s();
  time.at.fill({time.s, time.s});
  const MovedBySource sources = moved_by_source(step, training);
  // In a serial timeline the step changes by the sum of the changes of its operations.
  const bool serial = in_a_row(step.execution.timeline);
  std::optional<StepInStreams> streams;
  if (!serial) streams.emplace(step.plan, step.prices);
  const double expected_s = serial ? 0 : streams->lasts().s();
  for (std::size_t source = 0; source < error_sources; ++source) {
    if (sources[source].empty()) continue;
    const auto change_at = [&](Duration Interval::*end) {
      double change_s = 0;
      for (const Moved& of : sources[source]) {
        change_s += (of.ends.*end - step.prices[of.op].time).s();
        if (!serial) streams->set(of.op, of.ends.*end);
      }
      return serial ? change_s : streams->lasts().s() - expected_s;
    };
    TimeAtEnds::Ends& ends = time.at[source];
    ends.low_s += change_at(&Interval::low);
    ends.high_s += change_at(&Interval::high);
    if (!serial)
      for (const Moved& of : sources[source]) streams->set(of.op, step.prices[of.op].time);
    ends.common_s = (ends.high_s - ends.low_s) * common_share(sources[source]);
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
  // Adds a source with these effects (logarithms). `part` of their variance is independent of other
  // sources.
  const auto add = [&](std::size_t source, double one, double other, double part = 1) {
    const double low = std::min({one, other, 0.0}), high = std::max({one, other, 0.0});
    if (low == high) return;  // most sources occur in neither run
    below += part * low * low;
    above += part * high * high;
    ratio.shares.push_back({source, ratio.value * std::exp(low), ratio.value * std::exp(high)});
  };
  const auto effect = [&](double at_end) { return std::log(at_end / ratio.value); };
  double all_low = 0, all_high = 0;  // effects of the part that collectives have in common
  for (std::size_t i = 0; i < error_sources; ++i) {
    const TimeAtEnds::Ends &one = a.at[i], &other = b.at[i];
    if (!common[i]) {
      add(i, effect(one.low_s / b.s), effect(one.high_s / b.s));
      add(i, effect(a.s / other.low_s), effect(a.s / other.high_s));
      continue;
    }
    const double low = effect(one.low_s / other.low_s), high = effect(one.high_s / other.high_s);
    const double widths = one.high_s - one.low_s + other.high_s - other.low_s;
    const double shared = widths > 0 ? (one.common_s + other.common_s) / widths : 0;
    add(i, low, high, 1 - shared);
    all_low += std::sqrt(shared) * low;
    all_high += std::sqrt(shared) * high;
  }
  below += std::pow(std::min({all_low, all_high, 0.0}), 2);
  above += std::pow(std::max({all_low, all_high, 0.0}), 2);
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

std::optional<CallKind> measured_call(std::size_t source) {
  if (source < collectives) return std::nullopt;
  const std::size_t call = source - collectives;
  return CallKind{static_cast<Backend>(call / operations), static_cast<Op>(call % operations)};
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
