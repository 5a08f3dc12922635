// The levels of an exchange: which ranks first sum within a node, and which ranks exchange.
//
//   pattern     in the node                    between nodes                    sent by a GPU
//   flat        nothing                        all n ranks                      K
//   two-level   reduce to a leader; broadcast  the leaders of m nodes           K, by leaders
//   sharded     reduce_scatter; all_gather     m ranks, one of each node        K / g
//   relay,      as two-level                   the leaders with a hub
//   store
//
// There are K elements and g ranks on each of m nodes; in sharded exchanges g groups exchange at
// once. Gradients are uncompressed in the node. A leader decodes the result before the broadcast,
// as in Bagua. The result of a share is gathered in coded form if it was received so, and every
// rank decodes all of it.
//
// Weights exchanged every H steps go between sites instead of nodes, sharded unless the pattern has
// leaders. The ranks of a site hold equal weights, so nothing is summed first.
//
// Through a hub, leaders put their messages and get the results. M is the bytes of one message:
//
//                codes of sums    messages that all gather    all_reduce of S bytes
//   relay        put M, get M     put M, get n M              put S, get S
//   store        none             put M, get n M              none
//
// A relay adds up. It has one port with the speed of a rank's NIC, which the n leaders use one
// after another: its transfers are n times as long, and the counted bytes are those of the port.
// The time of its additions is not counted. An object store adds nothing up and is as fast as its
// readers (SparseLoCo, arXiv:2508.15706); the time of a request is not counted.
#pragma once

#include <vector>

#include "models/training/plan/exchange.h"
#include "models/training/plan/gradient_owners.h"
#include "models/training/plan/step_part.h"
#include "sim/collectives/process_group.h"

namespace lambcast {

struct ExchangeLevels {
  ExchangePattern pattern = ExchangePattern::flat;
  ProcessGroup node;     // one rank if there is only one level
  ProcessGroup between;  // the ranks that exchange
  int shards = 1;        // shares of the elements, each exchanged by its own group of ranks

  bool in_node() const { return node.ranks > 1; }
  bool is_sharded() const { return shards > 1; }
};

// Returns the levels of an exchange among `ranks`, which hold the same parameters. Sharded levels
// require the same number of ranks on each node.
ExchangeLevels levels_of(const Exchange& exchange, const ProcessGroup& ranks);

// Returns the owners without the copies of a share if these are sites, which sum no gradients.
std::vector<Owners> summing(std::vector<Owners> owners, const Exchange& exchange);

// Return the sum of `bytes` of gradients in the node, and the distribution of `bytes` to its ranks.
StepPart sum_in_node(const ExchangeLevels& levels, double bytes);
StepPart hand_out_in_node(const ExchangeLevels& levels, double bytes);

// Replaces the calls among `levels.between` by transfers to and from a hub.
std::vector<StepPart> through_hub(const std::vector<StepPart>& parts, const ExchangeLevels& levels);

}  // namespace lambcast
