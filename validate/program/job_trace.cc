#include "validate/program/job_trace.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/error.h"
#include "sim/base/printable.h"
#include "validate/program/recorded_trace.h"
#include "validate/program/training_log.h"

namespace lambcast {
namespace {

// Returns the length of the union of intervals.
double united_us(std::vector<std::pair<double, double>> spans) {
  std::ranges::sort(spans);
  double total = 0, end = -std::numeric_limits<double>::infinity();
  for (const auto& [from, to] : spans) {
    total += std::max(0.0, to - std::max(from, end));
    end = std::max(end, to);
  }
  return total;
}

TracedStep step_of(const std::vector<TracedKernel>& kernels,
                   const std::pair<double, double>& span) {
  TracedStep step{span.second - span.first};
  std::array<std::vector<std::pair<double, double>>, kernel_kind_names.size()> of_kind;
  const auto first = std::ranges::lower_bound(kernels, span.first, {}, &TracedKernel::begin_us);
  for (auto kernel = first; kernel != kernels.end() && kernel->begin_us < span.second; ++kernel) {
    const std::pair part{kernel->begin_us, std::min(kernel->end_us, span.second)};
    step.kernel_us[static_cast<std::size_t>(kernel->kind)] += part.second - part.first;
    of_kind[static_cast<std::size_t>(kernel->kind)].push_back(part);
  }
  std::vector<std::pair<double, double>> busy;
  double busy_us = 0;
  for (std::size_t kind = 0; kind < of_kind.size(); ++kind) {
    busy.insert(busy.end(), of_kind[kind].begin(), of_kind[kind].end());
    const double with_kind_us = united_us(busy);
    step.alone_us[kind] = with_kind_us - busy_us;
    busy_us = with_kind_us;
  }
  step.exposed_us = step.alone_us[static_cast<std::size_t>(KernelKind::communication)];
  step.computing_us = busy_us - step.exposed_us;
  step.idle_us = std::max(0.0, step.time_us - busy_us);
  return step;
}

// Adds gaps to steps. A step as run on the GPU ends with a kernel. The gap to the next step, in
// which the GPU waits for data or the host, belongs to the step, unless steps between the two were
// not recorded.
void add_gaps(std::vector<std::pair<double, double>>& spans) {
  for (std::size_t i = 0; i + 1 < spans.size(); ++i)
    if (const double next = spans[i + 1].first;
        next - spans[i].first < 2 * (spans[i].second - spans[i].first))
      spans[i].second = next;
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

KernelKind kind_of_kernel(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const auto has = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(
        words, [&](std::string_view word) { return lower.find(word) != std::string::npos; });
  };
  if (has({"ncclkernel", "nccldevkernel", "rccl", "msccl", "nvshmem", "deep_ep"}))
    return KernelKind::communication;
  if (has({"flash", "fmha", "attention", "sdpa"})) return KernelKind::attention;
  if (has({"gemm", "cutlass", "xmma", "nvjet", "conv", "gemv", "wgrad", "dgrad"}))
    return KernelKind::products;
  return has({"memcpy", "memset"}) ? KernelKind::copies : KernelKind::other;
}

TracedStep JobTrace::median() const {
  const auto of = [&](auto value) {
    std::vector<double> values;
    for (const TracedStep& step : steps) values.push_back(value(step));
    return median_of(std::move(values));
  };
  TracedStep middle;
  middle.time_us = of([](const TracedStep& step) { return step.time_us; });
  middle.computing_us = of([](const TracedStep& step) { return step.computing_us; });
  middle.exposed_us = of([](const TracedStep& step) { return step.exposed_us; });
  middle.idle_us = of([](const TracedStep& step) { return step.idle_us; });
  for (std::size_t kind = 0; kind < middle.kernel_us.size(); ++kind) {
    middle.kernel_us[kind] = of([=](const TracedStep& step) { return step.kernel_us[kind]; });
    middle.alone_us[kind] = of([=](const TracedStep& step) { return step.alone_us[kind]; });
  }
  return middle;
}

JobTrace read_job_trace(const std::string& path) {
  RecordedTrace recorded = read_trace(path);
  const Where where{path, 0, "--job-trace"};
  auto& spans = recorded.steps_of_gpu.empty() ? recorded.steps : recorded.steps_of_gpu;
  if (recorded.kernels.empty())
    fail_input(
        where, recorded.truncated ? "is not a JSON trace with kernel events" : "holds no kernel",
        "a trace of torch.profiler with activities=[CPU, CUDA], or an SQLite export of Nsight "
        "Systems");
  if (spans.empty())
    fail_input(where, "marks no step (ProfilerStep#N)",
               "a profiler with a schedule, whose step() is called after each optimizer step; NVTX "
               "ranges named \"step N\" or \"iteration N\" for Nsight Systems");
  std::ranges::sort(spans);
  if (!recorded.steps_of_gpu.empty()) add_gaps(spans);
  std::ranges::sort(recorded.kernels, {}, &TracedKernel::begin_us);
  JobTrace trace{
      recorded.gpu, recorded.gpus, {}, 0, recorded.truncated, std::move(recorded.collectives)};
  const bool cut = spans.size() >= 3;
  for (std::size_t i = cut ? 1 : 0; i < spans.size() - (cut ? 1 : 0); ++i)
    trace.steps.push_back(step_of(recorded.kernels, spans[i]));
  trace.left_out = cut ? 2 : 0;
  const double begin = spans[cut ? 1 : 0].first, end = spans[spans.size() - (cut ? 2 : 1)].second;
  for (const TracedKernel& kernel : recorded.kernels) {
    if (kernel.begin_us < begin || kernel.begin_us >= end) continue;
    const double us = kernel.end_us - kernel.begin_us;
    if (kernel.collective >= 0)
      trace.collectives[static_cast<std::size_t>(kernel.collective)].times.push_back(
          Duration::microseconds(us));
    if (kernel.kind != KernelKind::products || kernel.correlation == 0) continue;
    if (const int call = recorded.products.call_of(kernel.correlation); call >= 0)
      recorded.products.spend(call, us);
  }
  trace.products = recorded.products.products();
  std::erase_if(trace.collectives, [](const TracedCollective& call) { return call.times.empty(); });
  return trace;
}

SourceFigure figure_of(const JobTrace& trace, const std::string& path, const WhatIf& what_if) {
  SourceFigure figure;
  figure.name = printable(path);
  figure.what_if = what_if;
  figure.quantity = Quantity::step_time_s;
  const double median_us = trace.median().time_us;
  figure.measured = median_us * 1e-6;
  double squares = 0;
  for (const TracedStep& step : trace.steps) squares += std::pow(step.time_us / median_us - 1, 2);
  const auto steps = static_cast<double>(trace.steps.size());
  if (steps > 1)
    figure.standard_error = standard_error_of_median(std::sqrt(squares / (steps - 1)), steps);
  return figure;
}

}  // namespace lambcast
