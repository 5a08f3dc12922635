// Uncertainty of a compute time, by its basis.
//
// The interval of a time t is [t exp(-w), t exp(w)] with
//
//   w = sqrt(basis^2 + (micro_batch b)^2 + (seq_len l)^2)
//
//   b  doublings from the micro batch to the nearest measured one, outside or between points
//   l  the same for the sequence length
//
// The constants are the largest |log(measured / forecast)| when measured times were left out and
// forecast (validate/compute, which prints them):
//
//   constant        off  cases and their origin: what was forecast, and from what
//   this_machine   0.08  15 of 4 machines: parts of a step, whole nodes, a length, from the others
//   this_device    0.25  21 of 4 machines and a program, V100, from others on the same GPU
//   other_model    0.53   4 of 3 runs of GPTs, from curves of BERT-Large
//   rate           0.55  19 of 6 programs and GPUs, V100 and A100, from 40 % of the peak
//   micro_batch    0.10  11 of 3 curves of the V100, points from the others, per doubling
//   seq_len        0.22   5 of 4 programs and GPUs, sequence 512 from 128, one doubling
//
// Cases of one machine resemble one another, so they count as one. The largest of n machines is
// exceeded by the next with probability 1 / (n + 1), so the coverage is n / (n + 1), here 75 to 86
// %. The data support no more; 90 % would take 9 machines. They include no GPU after the A100, no
// models except transformers, and no training step on a GPU that was profiled.
#pragma once

#include <optional>
#include <string_view>

namespace lambcast {

// Evidence behind a time, from the closest to the most distant.
enum class Basis {
  this_machine,  // scaled by a measurement of the machine, or this very kernel measured
  this_device,   // timed on the same GPU in another machine or by another program
  blocks,        // blocks like the model's, timed singly or in a model of another depth
  kernels,       // the model's kernels by their shape, at the GPU's rates: rates_width()
  other_model,   // another model's curve, scaled by FLOPs
  rate,          // FLOPs over a rate
};

std::string_view name_of(Basis basis);

struct HeldOut {
  double off;
  int groups;  // number of machines, programs or curves

  // Returns the probability that the next similar case is covered.
  constexpr double coverage() const { return groups / (groups + 1.0); }
};
namespace held_out {
constexpr HeldOut this_machine{0.08, 4}, this_device{0.25, 5}, other_model{0.53, 3}, rate{0.55, 6},
    micro_batch{0.10, 3}, seq_len{0.22, 4};
}

struct ComputeWidth {
  double log = 0;  // w
  // The minimum over the parts of the width. It is given only for the first two bases: other
  // models, and GPUs with only a known peak, differ from the held-out cases, and no block was held
  // out.
  std::optional<double> coverage;
};

ComputeWidth compute_width(Basis basis, double micro_batch_doublings = 0,
                           double seq_len_doublings = 0);

// Uncertain inputs of a forecast of passes.
struct Unmeasured {
  double level_spread =
      0;  // spread of the program's level over `programs`; 0 programs: known level
  int programs = 0;
  bool share = false;  // the share of the peak reached in its format is assumed
};

// Returns the width of passes priced kernel by kernel. It uses the GPU's held-out runs if there are
// any (rates_interval.h).
ComputeWidth rates_width(const std::optional<HeldOut>& of_device, const Unmeasured& lacking = {});

}  // namespace lambcast
