#include "sim/network/fair_share.h"

#include <algorithm>
#include <limits>

namespace lambcast {
namespace {

std::vector<Share> shares_of(const FlowSet& set, const Topology& topology) {
  std::vector<std::uint32_t> weights;
  set.each([&](const Flow& flow, std::size_t) { weights.push_back(flow.weight); });
  return FairShares(topology).of(set.paths->links(), weights);
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

std::vector<Share> FairShares::of(const LinkLists& paths, std::span<const std::uint32_t> weights) {
  return of([&](const Take& take) { take(paths); }, weights);
}

std::vector<Share> FairShares::of(const Pieces& paths, std::span<const std::uint32_t> weights) {
  std::size_t at = 0, links = 0;
  const auto weights_of = [&](const LinkLists& piece) {
    if (weights.empty()) return weights;
    at += piece.size();
    return weights.subspan(at - piece.size(), piece.size());
  };
  paths([&](const LinkLists& piece) {
    count(piece, weights_of(piece));
    links += piece.links.size();
  });
  std::vector<Share> shares;
  at = 0;
  paths([&](const LinkLists& piece) { append_shares(piece, weights_of(piece), shares); });
  if (4 * links > load_.size())
    std::fill(load_.begin(), load_.end(), 0.0);
  else
    paths([&](const LinkLists& piece) {
      for (const LinkId link : piece.links) load_[link] = 0;
    });
  return shares;
}

void FairShares::count(const LinkLists& paths, std::span<const std::uint32_t> weights) {
  const auto& [links, first] = paths;
  if (weights.empty()) {
    for (const LinkId link : links) load_[link] += 1;
    return;
  }
  for (std::size_t i = 0; i + 1 < first.size(); ++i)
    for (std::uint32_t at = first[i]; at < first[i + 1]; ++at) load_[links[at]] += weights[i];
}

void FairShares::append_shares(const LinkLists& paths, std::span<const std::uint32_t> weights,
                               std::vector<Share>& shares) const {
  const auto& [links, first] = paths;
  for (std::size_t i = 0; i + 1 < first.size(); ++i) {
    double least = std::numeric_limits<double>::infinity(), narrowest = least;
    for (std::uint32_t at = first[i]; at < first[i + 1]; ++at) {
      const double capacity = topology_.capacity(links[at]).value(), load = load_[links[at]];
      narrowest = std::min(narrowest, capacity);
      // Most links carry one flow, and a division takes longer than the rest.
      least = std::min(least, load == 1 ? capacity : capacity / load);
    }
    const double weight = weights.empty() ? 1 : weights[i];
    const bool moves = first[i] != first[i + 1];
    const Bandwidth share(moves ? least * weight : 0), alone(moves ? narrowest : 0);
    if (shares.empty() || shares.back().each != share || shares.back().alone != alone)
      shares.push_back({share, alone, 0});
    ++shares.back().flows;
  }
}

Share ShareReader::next(std::uint32_t most) {
  Share share = shares_.front();
  share.flows = std::min(most, share.flows - read_);
  read_ += share.flows;
  if (read_ == shares_.front().flows) {
    shares_ = shares_.subspan(1);
    read_ = 0;
  }
  return share;
}

LastFlow last_flow(const FlowSet& set, const Topology& topology) {
  std::vector<Share> found;
  if (set.paths->shares().empty()) found = shares_of(set, topology);
  ShareReader shares(found.empty() ? set.paths->shares() : found);
  LastFlow last;
  double longest = 0, most_bytes = 0;
  bool all_move = true;
  First first;
  for (const Flow& flow : set.flows) {
    for (std::uint32_t left = flow.count; left > 0;) {
      const Share got = shares.next(left);
      left -= got.flows;
      double share = got.each.value();
      if (flow.cap.value() > 0 && (share == 0 || flow.cap.value() < share))
        share = flow.cap.value();
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
  }
  if (all_move && first.least_bytes == first.most_bytes && first.most_bytes == most_bytes)
    return {Bytes(most_bytes), Bandwidth(first.share), most_bytes > 0};
  return last;
}

}  // namespace lambcast
