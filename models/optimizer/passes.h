// Costs of an optimizer's kernels, on the GPU's memory and on the host that launches them.
//
// All kernels are memory-bound elementwise work, so their time is
//
//   max( bytes_per_element * N / copy_bandwidth,  launches * launch_overhead )
//     + syncs * sync_overhead
//
// with N elements in T tensors. As separate PyTorch operations, one kernel each, `x.mul_(b)` reads
// 4 and writes 4 bytes, `x.add_(y)` reads 8 and writes 4, and so on. The counts of each optimizer
// sum these in the order of its source, on fp32 state.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace lambcast {

// Kinds of steps of a run; steps of a kind have equal costs. `refresh`: GaLore recomputes its
// projections. `round`: a 1-bit round of 0/1 Adam before its variance is frozen, which moves fewer
// bytes than one after it. `dry_run`: the first step of a 1-bit optimizer without a wrapper, which
// sums gradients, exchanges an empty momentum and updates nothing.
enum class StepKind { uniform, warmup, compression, silent, refresh, round, dry_run };

constexpr std::string_view name_of(StepKind kind) {
  constexpr std::string_view names[] = {"uniform", "warmup", "compression", "silent",
                                        "refresh", "round",  "dry_run"};
  return names[static_cast<std::size_t>(kind)];
}

// Returns the kind under which a step is reported: a round counts as compression, a dry run as
// warm-up.
constexpr StepKind counted_as(StepKind kind) {
  if (kind == StepKind::round) return StepKind::compression;
  return kind == StepKind::dry_run ? StepKind::warmup : kind;
}
// The reported kinds, in the order of results, figures and pages. Results of older releases lack
// the columns of the last kinds.
inline constexpr std::array<StepKind, 5> step_kinds{StepKind::uniform, StepKind::warmup,
                                                    StepKind::compression, StepKind::silent,
                                                    StepKind::refresh};
inline constexpr std::size_t first_step_kinds = 4;

// Returns whether the engine sums gradients in such a step, as it does unless another exchange
// replaces the sum.
constexpr bool sums_gradients(StepKind kind) {
  return counted_as(kind) != StepKind::compression && kind != StepKind::silent;
}

// Returns whether momenta are exchanged in one bit.
constexpr bool compresses(StepKind kind) {
  return counted_as(kind) == StepKind::compression || kind == StepKind::dry_run;
}

// Origin of the kernels: DeepSpeed's (unfused for the 1-bit optimizers, fused for the others);
// DeepSpeed's with Adam unfused too (PyTorch's own before 2.0); DeepSpeed's with Adam as one launch
// over all tensors per operation (PyTorch's own from 2.0 on, torch/optim/adamw.py, foreach);
// NVIDIA's Apex; or those of kernels/.
enum class Kernels { deepspeed, unfused_adam, foreach_adam, nvidia, fused };
inline constexpr std::size_t kernels_count = static_cast<std::size_t>(Kernels::fused) + 1;
std::string_view name_of(
    Kernels kernels);  // name in flags and results; the first three share a name
std::string_view in_words(Kernels kernels);  // for example "DeepSpeed's unfused"

struct Passes {
  double bytes_per_element = 0;
  double launches = 0;
  double launches_per_tensor = 0;
  double syncs = 0;
  double syncs_per_tensor = 0;
  // Name of the kernel in `lambcast profile`, if measured: its measured time then replaces all
  // these costs.
  std::string_view kernel = {};
  // Bytes under another release of the framework; they give the low end of the time's interval.
  // Zero if releases are not known to differ.
  double least_bytes_per_element = 0;

  bool operator==(const Passes&) const = default;
};

// Bytes per element of the fp32 PyTorch expressions in unfused optimizers.
namespace expression {
inline constexpr double momentum = 20;   // m.mul_(b1).add_(g, alpha): 8 + 12
inline constexpr double variance = 20;   // v.mul_(b2).addcmul_(g, g): 8 + 12
inline constexpr double direction = 28;  // m / (v.sqrt() + eps): 8 + 8 + 12
inline constexpr double decay = 20;      // upd += wd * p: 8 + 12
inline constexpr double apply = 20;      // p.add_(-lr * upd): 8 + 12
}  // namespace expression

}  // namespace lambcast
