#include "sim/network/fair_share.h"

#include <algorithm>
#include <limits>

namespace lambcast {
namespace {

std::vector<Bandwidth> shares_of(const FlowSet& set, const Topology& topology) {
  std::vector<LinkId> links;
  std::vector<std::uint32_t> first{0}, weights;
  for (const Flow& flow : set.flows) {
    const auto begin = set.links->begin() + flow.first_link;
    links.insert(links.end(), begin, begin + flow.link_count);
    first.push_back(static_cast<std::uint32_t>(links.size()));
    weights.push_back(flow.weight);
  }
  return FairShares(topology).of(links, first, weights);
}

// The flows whose share per unit of weight is the least, as far as they were looked at.
struct First {
  double share = std::numeric_limits<double>::infinity();
  double least_bytes = 0, most_bytes = 0;  // per unit of weight

  void look_at(double share_of_one, double bytes_of_one) {
    if (share_of_one < share * (1 - 1e-12)) {
      *this = {share_of_one, bytes_of_one, bytes_of_one};
    } else if (share_of_one <= share * (1 + 1e-12)) {
      share = std::min(share, share_of_one);
      least_bytes = std::min(least_bytes, bytes_of_one);
      most_bytes = std::max(most_bytes, bytes_of_one);
    }
  }
};

}  // namespace

FairShares::FairShares(const Topology& topology)
    : topology_(topology), load_(topology.links().size()) {}

std::vector<Bandwidth> FairShares::of(std::span<const LinkId> links,
                                      std::span<const std::uint32_t> first,
                                      std::span<const std::uint32_t> weights) {
  std::vector<Bandwidth> shares;
  if (first.empty()) return shares;
  if (weights.empty()) {
    for (const LinkId link : links) load_[link] += 1;
  } else {
    for (std::size_t i = 0; i + 1 < first.size(); ++i)
      for (std::uint32_t at = first[i]; at < first[i + 1]; ++at) load_[links[at]] += weights[i];
  }
  shares.reserve(first.size() - 1);
  for (std::size_t i = 0; i + 1 < first.size(); ++i) {
    double least = std::numeric_limits<double>::infinity();
    for (std::uint32_t at = first[i]; at < first[i + 1]; ++at)
      least = std::min(least, topology_.capacity(links[at]).value() / load_[links[at]]);
    const double weight = weights.empty() ? 1 : weights[i];
    shares.emplace_back(first[i] == first[i + 1] ? 0 : least * weight);
  }
  for (const LinkId link : links) load_[link] = 0;
  return shares;
}

LastFlow last_flow(const FlowSet& set, const Topology& topology) {
  std::vector<Bandwidth> found;
  if (set.shares == nullptr) found = shares_of(set, topology);
  const std::vector<Bandwidth>& shares = set.shares != nullptr ? *set.shares : found;
  LastFlow last;
  double longest = 0, most_bytes = 0;
  bool all_move = true;
  First first;
  for (std::size_t i = 0; i < set.flows.size(); ++i) {
    const Flow& flow = set.flows[i];
    double share = shares[i].value();
    if (flow.cap.value() > 0 && (share == 0 || flow.cap.value() < share)) share = flow.cap.value();
    all_move = all_move && share > 0 && flow.bytes.value() > 0;
    if (share == 0) continue;
    if (const double time = flow.bytes.value() / share; time > longest) {
      longest = time;
      last.bytes = flow.bytes;
      last.share = Bandwidth(share);
    }
    most_bytes = std::max(most_bytes, flow.bytes.value() / flow.weight);
    first.look_at(share / flow.weight, flow.bytes.value() / flow.weight);
  }
  if (all_move && first.least_bytes == first.most_bytes && first.most_bytes == most_bytes)
    return {Bytes(most_bytes), Bandwidth(first.share), most_bytes > 0};
  return last;
}

}  // namespace lambcast
