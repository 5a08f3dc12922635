// Fair shares: the rate of each flow at the narrowest link of its route while every flow of its set
// is active:
//
//   share of a flow = weight * min over its links of capacity / (sum of the weights on the link)
//
// A flow alone on its links runs at the smallest of their capacities.
//
// A share depends on routes and weights alone, so it is found once for all sizes and protocols. A
// set that has the network to itself and whose flows keep these shares takes as long as its last
// flow.
//
// Max-min rates are never below these shares, and equal them on the link that fills first. So a set
// takes exactly as long under max-min sharing if the flows with the least share per unit of weight
// also have the most bytes per unit of weight, all of them equally many: flows that end earlier
// free no link that these flows use.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/network/network.h"

namespace lambcast {

class FairShares {
 public:
  // The topology must outlive this object.
  explicit FairShares(const Topology& topology);

  // Returns the loads if flow i uses the links of path i with weight `weights[i]`. Without weights,
  // each flow has weight one.
  FlowLoads of(const LinkLists& paths, std::span<const std::uint32_t> weights);

  // Returns the loads for paths produced in pieces, if there are too many to keep. `Pieces` must
  // produce the same pieces in each call.
  using Take = std::function<void(const LinkLists&)>;
  using Pieces = std::function<void(const Take&)>;
  FlowLoads of(const Pieces& paths, std::span<const std::uint32_t> weights);

 private:
  void count(const LinkLists& paths, std::span<const std::uint32_t> weights);
  void append(const LinkLists& paths, std::span<const std::uint32_t> weights, FlowLoads& loads);
  std::uint32_t class_of(std::span<const LinkId> links, std::uint32_t weight, FlowLoads& loads);
  bool is_in(const FlowLoads::Class& of, std::span<const LinkId> links, std::uint32_t weight) const;

  const Topology& topology_;
  std::vector<double> load_;                                // load of each link; zero between calls
  std::unordered_map<std::uint64_t, std::uint32_t> known_;  // classes by hash, during a call
};

// Reads shares in order, from the first flow on.
class ShareReader {
 public:
  explicit ShareReader(std::span<const Share> shares) : shares_(shares) {}
  // Returns the share of the next flow and the number of consecutive flows with that share, at most
  // `most`; advances past them.
  Share next(std::uint32_t most);

 private:
  std::span<const Share> shares_;
  std::uint32_t read_ = 0;  // flows read of the first run
};

// The flow that ends last if each keeps its share. Its bytes are zero if no flow has anything to
// move.
struct LastFlow {
  Bytes bytes;
  Bandwidth share;
  bool max_min = false;  // whether it ends at the same time under max-min sharing
};

LastFlow last_flow(const FlowSet& flows, const Topology& topology);

}  // namespace lambcast
