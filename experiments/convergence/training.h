// Does a run that sends less learn as much? Trains the transformer of
// kernels/emulated_world/transformer.h with an optimizer and an exchange on n emulated ranks, each
// with its own sequences, and records loss against steps. All runs see the same sequences in the
// same order, start from the same weights and follow the same schedule of the learning rate:
// linear warm-up to the peak, linear decay to 0.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/emulated_world/transformer.h"

namespace lambcast::convergence {

enum class Optimizer {
  lamb,
  adam,
  lion,
  onebit_lamb,
  onebit_adam,
  zero_one_adam,
  // Optimizers that need whole tensors; ZeRO-1 shards their states.
  distributed_lamb,  // Colossal-AI's variant: bias correction in the rate, unclamped trust ratios
  lars,
  adafactor,
  came,
  galore_adamw8bit,  // rank is a quarter of the width; 8-bit states from 256 elements on
};
// Returns the name as the flag --optimizer accepts it.
const char* name_of(Optimizer optimizer);
bool freezes(Optimizer optimizer);  // returns whether it has a freeze_step

// How gradients are averaged, if the optimizer leaves it to the engine. Local steps and DiLoCo
// average weights every 16 steps instead; neighbours average theirs in every step.
enum class Exchange {
  plain,
  fp8,     // one scale per message, no error feedback
  int8,    // blocks of 64, no error feedback
  onebit,  // signs of gradients, with error feedback, from the first step on
  // The exchange onebit between two nodes of two ranks: each rank exchanges its share of the node's
  // fp16 sum.
  onebit_sharded,
  int4,            // blocks of 64, with error feedback
  int4_unowed,     // blocks of 64, no error feedback
  qgz_int4,        // two ranks a node, int4 in both phases, with error feedback
  power_sgd_4,     // rank 4, warm start
  top_k_1,         // largest 1 % of the elements, error feedback
  random_k_1,      // random 1 % of the elements, error feedback
  fp16,            // partial sums rounded at every hop of a ring
  chunk_top_k_64,  // the 64 largest of each 4,096 elements in 2 bits, error feedback
  dct_sign_64,     // signs of 64 coefficients of each 4,096 elements, error feedback
  local_steps_16,  // this and the following average weights
  diloco_16,       // outer lr 0.7, Nesterov momentum 0.9
  streamed_16,     // DiLoCo in 4 fragments that arrive after 2 steps
  // Averages of weights after every step, with neighbours only.
  neighbours_ring,
  neighbours_exponential,
};

bool averages_weights(Exchange exchange);

struct Recipe {
  text::TransformerShape shape{.width = 32, .layers = 2, .heads = 4, .context = 32};
  int ranks = 4;
  int sequences = 1;  // sequences per rank and step
  int steps = 2000;
  int lr_warmup = 100;
  // beta2 = 0.99 averages over 100 of 2,000 steps, as 0.999 averages over 1,000 of 20,000.
  double beta2 = 0.99;
  // Share of the steps at which the monitor ends the warm-up even if the variance has not settled.
  // 0: never, as in the recorded runs. With 15 % the runs would repeat the recorded ones that
  // freeze there.
  double latest_share = 0;
  double weight_decay = 0.01;  // for matrices only
  double clipping = 1;
  // Peak learning rates: the change of an element per step for Adam, CAME and GaLore; the change of
  // a tensor as a share of its norm for LAMB, LARS and Adafactor. No optimizer is tuned.
  // Lion changes every element by the whole rate, so it has a third of Adam's rate and three times
  // the decay (arXiv:2302.06675, section 5).
  double adam_lr = 3e-3, lamb_lr = 1e-2, lion_lr = 1e-3;
  int every = 50;  // steps averaged in a point of the curve
  int held_out_every = 250;
};

// The same recipe with 206,016 parameters instead of 28,448, and twice the sequences.
Recipe large_recipe();

struct Run {
  Optimizer optimizer = Optimizer::lamb;
  Exchange exchange = Exchange::plain;
  int freeze_step = 0;  // for optimizers that have one; 0: the monitor of the variance chooses it
  std::string name() const;
};

struct Point {
  int step = 0;
  double loss = 0;      // mean over `every` steps and the sequences of all ranks
  double held_out = 0;  // NaN at points without an evaluation
};
struct Curve {
  Run run;
  int frozen_at = 0;  // last step that sent everything; 0: all steps did
  std::vector<Point> points;
};

// Returns the runs of the study.
std::vector<Run> study_runs(const Recipe& recipe);
// Callback that receives |v|_1 of every tensor when the monitor measures it; may be empty.
using VarianceLog = std::function<void(int step, std::span<const double> norms)>;
Curve train(const text::Transformer& model, const Recipe& recipe, const Run& run,
            const VarianceLog& log = {});

}  // namespace lambcast::convergence
