#include "sim/network/fair_share.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace lambcast {
namespace {

std::vector<Share> shares_of(const FlowSet& set, const Topology& topology) {
  std::vector<std::uint32_t> weights;
  set.each([&](const Flow& flow, std::size_t) { weights.push_back(flow.weight); });
  return FairShares(topology).of(set.paths->links(), weights).shares(topology);
}

// The flows with the least share per unit of weight among the flows examined so far.
struct First {
  double share = std::numeric_limits<double>::infinity();
  double least_bytes = 0, most_bytes = 0;  // bytes per unit of weight

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

FlowLoads FairShares::of(const LinkLists& paths, std::span<const std::uint32_t> weights) {
  return of([&](const Take& take) { take(paths); }, weights);
}

FlowLoads FairShares::of(const Pieces& paths, std::span<const std::uint32_t> weights) {
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
  FlowLoads loads;
  at = 0;
  known_.clear();
  paths([&](const LinkLists& piece) { append(piece, weights_of(piece), loads); });
  if (4 * links > load_.size())
    std::fill(load_.begin(), load_.end(), 0.0);
  else
    paths([&](const LinkLists& piece) {
      for (const LinkId link : piece.links) load_[link] = 0;
    });
  return loads;
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

void FairShares::append(const LinkLists& paths, std::span<const std::uint32_t> weights,
                        FlowLoads& loads) {
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::uint32_t weight = weights.empty() ? 1 : weights[i];
    const bool as_before =
        !loads.runs.empty() && is_in(loads.classes[loads.runs.back().of], paths.of(i), weight);
    if (!as_before)
      if (const std::uint32_t of = class_of(paths.of(i), weight, loads);
          loads.runs.empty() || loads.runs.back().of != of)
        loads.runs.push_back({of, 0});
    ++loads.runs.back().flows;
  }
}

bool FairShares::is_in(const FlowLoads::Class& of, std::span<const LinkId> links,
                       std::uint32_t weight) const {
  return of.weight == weight &&
         std::ranges::equal(of.links, links, [&](const FlowLoads::OnLink& on, LinkId link) {
           return on.load == load_[link] && topology_.role(on.link) == topology_.role(link);
         });
}

std::uint32_t FairShares::class_of(std::span<const LinkId> links, std::uint32_t weight,
                                   FlowLoads& loads) {
  std::uint64_t hash = weight;
  for (const LinkId link : links) {
    hash = (hash ^ std::bit_cast<std::uint64_t>(load_[link])) * 0x9e3779b97f4a7c15;
    hash = (hash ^ (hash >> 29) ^ topology_.role(link)) * 0xbf58476d1ce4e5b9;
  }
  const auto next = static_cast<std::uint32_t>(loads.classes.size());
  const auto [known, is_new] = known_.try_emplace(hash, next);
  if (!is_new && is_in(loads.classes[known->second], links, weight)) return known->second;
  loads.classes.push_back({{}, weight});
  for (const LinkId link : links) loads.classes.back().links.push_back({link, load_[link]});
  return next;
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
  last.max_min = longest == 0;  // no bytes to move
  return last;
}

}  // namespace lambcast
