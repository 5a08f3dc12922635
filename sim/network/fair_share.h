// Rate that the narrowest link on a flow's route leaves it while every flow of its set is active:
//
//   share of a flow = weight * min over its links of capacity / (sum of the weights on the link)
//
// and, if it has the links to itself, the smallest of their capacities.
//
// It depends on routes and weights alone, so it is found once for all sizes and protocols. A set
// that has the network to itself and whose flows keep these shares takes as long as its last flow.
//
// Max-min rates are never below these shares, and equal them where a link fills first. So if the
// flows with the least share per unit of weight have the most bytes per unit of weight, and all of
// them as many, the set takes exactly as long under max-min sharing: what ends earlier frees no
// link that they wait for.
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

  // Flow i uses the links of path i and counts `weights[i]` times; no weights: once each.
  FlowLoads of(const LinkLists& paths, std::span<const std::uint32_t> weights);

  // The same for paths that come in pieces, if there are too many to be kept. Each call must
  // produce the same pieces.
  using Take = std::function<void(const LinkLists&)>;
  using Pieces = std::function<void(const Take&)>;
  FlowLoads of(const Pieces& paths, std::span<const std::uint32_t> weights);

 private:
  void count(const LinkLists& paths, std::span<const std::uint32_t> weights);
  void append(const LinkLists& paths, std::span<const std::uint32_t> weights, FlowLoads& loads);
  std::uint32_t class_of(std::span<const LinkId> links, std::uint32_t weight, FlowLoads& loads);
  bool is_in(const FlowLoads::Class& of, std::span<const LinkId> links, std::uint32_t weight) const;

  const Topology& topology_;
  std::vector<double> load_;                                // per link; zero between two calls
  std::unordered_map<std::uint64_t, std::uint32_t> known_;  // classes by a hash, within a call
};

// Goes over shares from the first flow on.
class ShareReader {
 public:
  explicit ShareReader(std::span<const Share> shares) : shares_(shares) {}
  // The share of the next flow, and how many it is that of among the next `most`; steps over them.
  Share next(std::uint32_t most);

 private:
  std::span<const Share> shares_;
  std::uint32_t read_ = 0;  // of the first of them
};

// The flow that ends last while each keeps its share (zero bytes: none has anything to wait for).
struct LastFlow {
  Bytes bytes;
  Bandwidth share;
  bool max_min = false;  // ends then under max-min sharing too
};

LastFlow last_flow(const FlowSet& flows, const Topology& topology);

}  // namespace lambcast
