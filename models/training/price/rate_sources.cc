#include "models/training/price/rate_sources.h"

#include <fmt/format.h>

namespace lambcast {
namespace {

std::string of_format(std::string_view name, MatrixFormat format) {
  return format == MatrixFormat::half ? std::string(name)
                                      : fmt::format("{}_{}", name, name_of(format));
}

}  // namespace

std::string peak_name(MatrixFormat format) { return of_format("matrix_peak", format); }
std::string share_name(MatrixFormat format) { return of_format("matrix_share", format); }

void read_rates(const RateTimes& times, const GpuRates& rates, CostSources& sources) {
  const auto read = [&](Rate rate, std::string_view cost, const Provenance& from) {
    const Duration time = times.of[static_cast<std::size_t>(rate)];
    if (time > Duration()) sources.read_for(time, cost, from);
  };
  for (std::size_t i = 0; i < matrix_formats; ++i) {
    const auto format = static_cast<MatrixFormat>(i);
    const MatrixRate& products = rates.of(format);
    read(rate_of(format), peak_name(format), products.peak.provenance);
    read(rate_of(format), share_name(format), products.share.provenance);
  }
  read(Rate::memory, "memory_rate", rates.memory.provenance);
  read(Rate::vector, "vector_peak", rates.peak_vector.provenance);
  read(Rate::exponentials, "exponentials", rates.exponentials.provenance);
  read(Rate::start, "kernel_start", rates.kernel_start.provenance);
}

void read_update_kernels(Kernels kernels, FrameworkName framework, const StackSpec& stack,
                         CostSources& sources) {
  if (kernels == Kernels::unfused_adam && stack.unfused_adam)
    sources.read("unfused_adam", stack.unfused_adam_from);
  else if (kernels == Kernels::unfused_adam && framework == FrameworkName::tensorflow)
    sources.read("unfused_update",
                 {Kind::assumed,
                  "NVIDIA DeepLearningExamples, TensorFlow BERT, optimization.py: "
                  "operation by operation, of which XLA fuses none"});
  else if (kernels == Kernels::unfused_adam)
    sources.read("unfused_adam", {Kind::published, "PyTorch before 2.0 (torch/optim/adamw.py)"});
  else if (kernels == Kernels::foreach_adam)
    sources.read("foreach_adam", {Kind::published, "PyTorch from 2.0 on (torch/optim/adamw.py)"});
}

Provenance compression_kernels_from(Kernels kernels, const Exchange& exchange) {
  const bool fused = kernels == Kernels::fused;
  const bool selects =
      !fused && exchange.kind == Exchange::Kind::topk && !exchange.is_in_other_form();
  return {Kind::assumed,
          selects
              ? "topk of 25.6 M elements by PyTorch 1.8 on a V100, 240 ms (arXiv:2103.00543), by "
                "copy bandwidth; later releases are some 20 times as fast or more"
          : exchange != Exchange{}
              ? "bytes and launches of the exchange's kernels, counted, over copy bandwidth"
          : fused ? "bytes of the fused kernels over copy bandwidth (kernels/cuda)"
                  : "bytes of DeepSpeed's unfused operations over copy bandwidth"};
}

}  // namespace lambcast
