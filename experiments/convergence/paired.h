// Compares runs with their plain run over several draws of initial weights and sequences. A draw
// shifts both losses of a pair alike. So their difference has a much smaller spread than either
// loss, and shows effects that a single draw cannot.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "experiments/convergence/training.h"

namespace lambcast::convergence {

// A run, and the run of the same optimizer with uncompressed gradients and the same draw.
struct Pair {
  std::string run;
  int sequences = 1;  // sequences per rank and step
  unsigned draw = 0;
  double loss = 0, plain_loss = 0;  // final_loss(), in nats per character

  double difference() const { return loss - plain_loss; }
};

// Trains every run with each number of sequences and each draw (0 to draws - 1) on `threads`
// threads.
std::vector<Pair> train_pairs(const Recipe& recipe, std::span<const Run> runs,
                              std::span<const int> sequences, int draws, int threads);

// The mean difference between the losses of the pairs of one run and batch.
struct PairedDifference {
  std::string run;
  int sequences = 1, draws = 0;
  double mean = 0;
  double deviation = 0;        // standard deviation of the differences
  double plain_deviation = 0;  // standard deviation of the plain losses

  // Returns whether the mean is more than two standard errors from 0.
  bool is_resolved() const;
};
std::vector<PairedDifference> paired_differences(std::span<const Pair> pairs);

std::string pairs_csv(std::span<const Pair> pairs);
// Formats the differences as a table, with the batch of `ranks` ranks.
std::string paired_table(std::span<const PairedDifference> differences, int ranks);

}  // namespace lambcast::convergence
