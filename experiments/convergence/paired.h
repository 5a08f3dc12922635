// Runs against their plain run over several draws of first weights and sequences. A draw moves both
// losses of a pair alike, so that their difference has a much smaller spread than either loss, and
// resolves what one draw cannot.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "experiments/convergence/training.h"

namespace lambcast::convergence {

// One run, and the run of the same optimizer whose gradients go whole, with the same draw.
struct Pair {
  std::string run;
  int sequences = 1;  // of a rank in a step
  unsigned draw = 0;
  double loss = 0, plain_loss = 0;  // final_loss(), nats a character

  double difference() const { return loss - plain_loss; }
};

// Every run with each number of sequences and each draw from 0 on, by `threads` threads.
std::vector<Pair> train_pairs(const Recipe& recipe, std::span<const Run> runs,
                              std::span<const int> sequences, int draws, int threads);

// The mean difference of the pairs of one run and batch.
struct PairedDifference {
  std::string run;
  int sequences = 1, draws = 0;
  double mean = 0;
  double deviation = 0;        // of the differences: their standard deviation
  double plain_deviation = 0;  // of the plain losses alone

  // Whether the mean is more than two standard errors from 0.
  bool is_resolved() const;
};
std::vector<PairedDifference> paired_differences(std::span<const Pair> pairs);

std::string pairs_csv(std::span<const Pair> pairs);
// A table with the batch of `ranks` ranks.
std::string paired_table(std::span<const PairedDifference> differences, int ranks);

}  // namespace lambcast::convergence
