// Effect of an optimizer's kernels on the GPU's memory and on the host that launches them.
//
// All of it is memory bound elementwise work, so its time is
//
//   max( bytes_per_element * N / copy_bandwidth,  launches * launch_overhead )
//     + syncs * sync_overhead
//
// with N elements in T tensors. Written as separate PyTorch operations, one kernel each,
// `x.mul_(b)` reads and writes 4 bytes, `x.add_(y)` reads 8 and writes 4, and so on; the counts of
// each optimizer add these up in the order of its source, on fp32 state.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace lambcast {

// The steps of a run that cost alike. `refresh`: GaLore computes its projections anew. `round`: a
// 1-bit round of 0/1 Adam before its variance is frozen, which moves less than one after it.
// `dry_run`: the first step of a 1-bit optimizer that no wrapper has tried before, which sums
// gradients, exchanges an empty momentum and updates nothing.
enum class StepKind { uniform, warmup, compression, silent, refresh, round, dry_run };

constexpr std::string_view name_of(StepKind kind) {
  constexpr std::string_view names[] = {"uniform", "warmup", "compression", "silent",
                                        "refresh", "round",  "dry_run"};
  return names[static_cast<std::size_t>(kind)];
}

// The kind whose steps it is counted among: a round is compression, a dry run warm-up.
constexpr StepKind counted_as(StepKind kind) {
  if (kind == StepKind::round) return StepKind::compression;
  return kind == StepKind::dry_run ? StepKind::warmup : kind;
}
// The kinds that are told apart, in the order of results, figures and pages. Results of older
// releases lack the columns of the last.
inline constexpr std::array<StepKind, 5> step_kinds{StepKind::uniform, StepKind::warmup,
                                                    StepKind::compression, StepKind::silent,
                                                    StepKind::refresh};
inline constexpr std::size_t first_step_kinds = 4;

// Whether the engine sums gradients in such a step, as it does wherever nothing stands in for them.
constexpr bool sums_gradients(StepKind kind) {
  return counted_as(kind) != StepKind::compression && kind != StepKind::silent;
}

// Whether momenta are exchanged in one bit.
constexpr bool compresses(StepKind kind) {
  return counted_as(kind) == StepKind::compression || kind == StepKind::dry_run;
}

// Whose kernels run: DeepSpeed's (unfused for the 1-bit optimizers, fused for the plain ones), the
// same with plain Adam unfused too (PyTorch's own before 2.0), that Adam with one launch of all
// tensors for each of its operations (PyTorch's own from 2.0 on, torch/optim/adamw.py, foreach),
// NVIDIA's Apex, or those of kernels/.
enum class Kernels { deepspeed, unfused_adam, foreach_adam, nvidia, fused };
inline constexpr std::size_t kernels_count = static_cast<std::size_t>(Kernels::fused) + 1;
std::string_view name_of(Kernels kernels);   // of flags and results: the first three are one
std::string_view in_words(Kernels kernels);  // "DeepSpeed's unfused"

struct Passes {
  double bytes_per_element = 0;
  double launches = 0;
  double launches_per_tensor = 0;
  double syncs = 0;
  double syncs_per_tensor = 0;
  // The name under which `lambcast profile` measures it, if it does: its time then replaces all
  // that.
  std::string_view kernel = {};
  // Bytes under another release of the framework, at which the time's interval begins; zero if
  // releases are not known to differ.
  double least_bytes_per_element = 0;

  bool operator==(const Passes&) const = default;
};

// Bytes of the PyTorch expressions on fp32 that unfused optimizers are made of.
namespace expression {
inline constexpr double momentum = 20;   // m.mul_(b1).add_(g, alpha): 8 + 12
inline constexpr double variance = 20;   // v.mul_(b2).addcmul_(g, g): 8 + 12
inline constexpr double direction = 28;  // m / (v.sqrt() + eps): 8 + 8 + 12
inline constexpr double decay = 20;      // upd += wd * p: 8 + 12
inline constexpr double apply = 20;      // p.add_(-lr * upd): 8 + 12
}  // namespace expression

}  // namespace lambcast
