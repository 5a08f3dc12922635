// Which layouts there are to choose from: the candidates of a search (layout_search.h), as the
// what-if keys that a user would give.
//
//   tp            divisors of the GPUs of a node
//   cp            divisors that leave a rank at least 4,096 tokens of a sequence: no pre-training
//                 run of the published tables of validate/replay cuts them shorter
//   pp            divisors of what is left, up to the layers
//   ep            divisors of the experts that divide the ranks of dp x cp
//   etp           as tp, or 1, where there are experts
//   interleave    divisors of the layers of a stage (the ends counted as layers under count_ends)
//   split         the framework's own, and of the others it has those that divide the layers
//                 otherwise: count_ends where layers and ends divide, spread and fill where layers
//                 do not
//   micro_batch   divisors of the samples of a replica, up to 64
//   zero_stage, recompute, sequence_parallel, split
//                 of what the framework offers, in the table of layout_space.cc
//
// A key that the user gave has that value alone; dp is what tp, cp and pp leave, so one that was
// given leaves out those that leave another. Candidates are whole in that their numbers divide;
// whether the model can be divided so is for models/parallel/layout_rules.h to say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/scenario/scenario.h"

namespace lambcast {

struct LayoutCandidate {
  int tp = 1, cp = 1, pp = 1, ep = 1, interleave = 1;
  int etp = 0;  // tensor parallelism inside an expert; 0: as tp
  int zero_stage = 0;
  std::int64_t micro_batch = 1;
  std::string recompute = "none";
  std::string sequence_parallel = "false";
  // Split of layers over stages. Empty: the framework's own, or the one given by the user.
  std::optional<parallel::SplitMethod> split{};

  // Returns whether both divide the model equally: the other members are settings.
  bool divides_as(const LayoutCandidate& other) const {
    return tp == other.tp && cp == other.cp && pp == other.pp && ep == other.ep;
  }
};

// The run whose layouts are searched.
struct LayoutSpace {
  WhatIf asked;       // with the defaults of a search
  TrainingPlan base;  // on one GPU a replica, one sample at a time: model, device, GPUs, sequence
  std::int64_t global_batch = 0;
};

// Throws Error (usage) if no layout can run.
LayoutSpace layout_space(const WhatIf& asked, Catalog& catalog);

// Returns all candidates, always in the same order: the plainer ones first.
std::vector<LayoutCandidate> layout_candidates(const LayoutSpace& space);

// Returns how the layers of a candidate are split over stages.
parallel::SplitMethod split_of(const LayoutSpace& space, const LayoutCandidate& candidate);

// The what-if of one candidate, as `simulate` takes it.
WhatIf with_layout(const LayoutSpace& space, const LayoutCandidate& candidate);

}  // namespace lambcast
