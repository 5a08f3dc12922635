// The levels of an exchange: which ranks first sum within a node, and which ranks exchange.
//
//   pattern     in the node                    between nodes                    sent by a GPU
//   flat        nothing                        all n ranks                      K
//   two-level   reduce to a leader; broadcast  the leaders of m nodes           K, by leaders
//   sharded     reduce_scatter; all_gather     m ranks of one place in a node   K / g
//
//   relay,      as two-level                     leaders with a hub
//   store
//
// K elements, g ranks on each of m nodes; sharded, g groups exchange at once. In the node gradients
// travel as they are. The result of a leader is broadcast decoded, as Bagua does. The result of a
// share is gathered as it was coded, if it was, so that every rank decodes all.
//
// Weights that go every H steps do so between sites instead of nodes, by shares unless by leaders.
// In a site they are equal, so that nothing is summed before.
//
// Through a hub leaders put what they send and get what comes out. M bytes are one's message:
//
//                codes of sums    messages that all gather    all_reduce of S bytes
//   relay        put M, get M     put M, get n M              put S, get S
//   store        none             put M, get n M              none
//
// A relay adds up, and has one port of the speed of a rank's NIC, over which all n go one after
// another: its transfers are n times as long, and bytes are those of that port. What it computes is
// not counted. An object store adds nothing up and is as fast as its readers (SparseLoCo,
// arXiv:2508.15706); the time of a request is not counted.
#pragma once

#include <vector>

#include "models/training/plan/exchange.h"
#include "models/training/plan/gradient_owners.h"
#include "models/training/plan/step_part.h"
#include "sim/collectives/process_group.h"

namespace lambcast {

struct ExchangeLevels {
  ExchangePattern pattern = ExchangePattern::flat;
  ProcessGroup node;     // of one rank if there is only one level
  ProcessGroup between;  // the ranks that exchange
  int shards = 1;        // shares of the elements, each exchanged by its own group of ranks

  bool in_node() const { return node.ranks > 1; }
  bool is_sharded() const { return shards > 1; }
};

// Returns the levels of an exchange among `ranks`, which hold the same parameters. Sharded levels
// require the same number of ranks on each node.
ExchangeLevels levels_of(const Exchange& exchange, const ProcessGroup& ranks);

// The same, whose copies of a share sum no gradients where they are sites.
std::vector<Owners> summing(std::vector<Owners> owners, const Exchange& exchange);

// The sum of `bytes` of gradients in the node, and the way of `bytes` back to its ranks.
StepPart sum_in_node(const ExchangeLevels& levels, double bytes);
StepPart hand_out_in_node(const ExchangeLevels& levels, double bytes);

// Replaces the calls among `levels.between` by those with a hub.
std::vector<StepPart> through_hub(const std::vector<StepPart>& parts, const ExchangeLevels& levels);

}  // namespace lambcast
