// How far a compute time may be off, by what it rests on.
//
// The interval of a time t is [t exp(-w), t exp(w)] with
//
//   w = sqrt(basis^2 + (micro_batch b)^2 + (seq_len l)^2)
//
//   b  how many doublings the micro batch lies from the nearest measured one, beyond or between
//   l  the same of the sequence length
//
// The constants are the largest |log(measured / forecast)| where measured times were forecast
// without themselves (validate/compute, which prints them):
//
//   constant        off  cases
//   this_machine   0.08  15 of 4 machines: parts of a step, whole nodes, a length, from the others
//   this_device    0.25  21 of 4 machines and a program, V100, from others on the same GPU
//   other_model    0.53   4 of 3 runs of GPTs, from curves of BERT-Large
//   rate           0.55  19 of 6 programs and GPUs, V100 and A100, from 40 % of the peak
//   micro_batch    0.10  11 of 3 curves of the V100, points from the others, a doubling
//   seq_len        0.22   5 of 4 programs and GPUs, sequence 512 from 128, a doubling
//
// Cases of one machine resemble one another, so they count as one. The largest of n alike machines
// is as likely as any to be exceeded by the next: it holds n in n + 1, 75 to 86 % here. That is
// what the data support; 90 % would take 9 machines. No GPU after the A100 is among them, no model
// but transformers, and no training step of a GPU that was profiled.
#pragma once

#include <optional>
#include <string_view>

namespace lambcast {

// From the closest to the farthest.
enum class Basis {
  this_machine,  // a figure of the machine itself set the scale, or measured this very kernel
  this_device,   // timed on the same GPU in another machine or by another program
  blocks,        // blocks like the model's, alone or in a model with another number of them
  kernels,       // the model's kernels by their shape, at the GPU's rates: rates_width()
  other_model,   // another model's curve, scaled by FLOPs
  rate,          // FLOPs over a rate
};

std::string_view name_of(Basis basis);

struct HeldOut {
  double off;
  int groups;  // machines, programs or curves

  // Returns the coverage of the next case alike.
  constexpr double coverage() const { return groups / (groups + 1.0); }
};
namespace held_out {
constexpr HeldOut this_machine{0.08, 4}, this_device{0.25, 5}, other_model{0.53, 3}, rate{0.55, 6},
    micro_batch{0.10, 3}, seq_len{0.22, 4};
}

struct ComputeWidth {
  double log = 0;  // w
  // The least of its parts. Of the first two bases only: the next model, or a GPU known by its peak
  // alone, is not like those held out, and of blocks there was none.
  std::optional<double> coverage;
};

ComputeWidth compute_width(Basis basis, double micro_batch_doublings = 0,
                           double seq_len_doublings = 0);

// The evidence that a forecast of passes lacks.
struct Unmeasured {
  double level_spread = 0;  // of the program's level over `programs`; 0 programs: it is known
  int programs = 0;
  bool share = false;  // the share of the peak that products in its format reach is assumed
};

// Returns the width of passes priced kernel by kernel, from held-out runs of the GPU if there are
// any: rates_interval.h.
ComputeWidth rates_width(const std::optional<HeldOut>& of_device, const Unmeasured& lacking = {});

}  // namespace lambcast
