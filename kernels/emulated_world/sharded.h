// Optimizers that need statistics of whole tensors (the rules of reference/part.h), over two axes
// of ranks: data and tensor parallel, with ZeRO dividing the state of a data rank. The sums of each
// round are over the ranks that divide a tensor: its tensor-parallel ranks, and with ZeRO its data
// ranks too. Each rank has its own state, so that tests can check that replicas stay equal.
//
// Gradients are first averaged over the data ranks in full precision, as the plugins do: whole
// ones, or with ZeRO-2 only a rank's own part, summed from that rank on. Source: Colossal-AI
// booster/plugin, zero/low_level.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/options.h"
#include "kernels/reference/part.h"
#include "sim/base/check.h"

namespace lambcast::emulated {

// How tensor-parallel ranks divide a matrix; `none` is a copy on each.
enum class Split { none, rows, columns };

struct ShardedTensor {
  reference::MatrixShape shape;
  Split split = Split::none;
};

struct Sharding {
  int dp = 1, tp = 1;
  int zero = 0;  // 0 to 2
};

// Returns the part of a tensor that a rank keeps. Rows, columns and parts of ranks differ in size
// if the division has a remainder.
reference::Part part_of(const ShardedTensor& tensor, const Sharding& sharding, int data_rank,
                        int tensor_rank);
struct RankPlace {
  int data = 0, tensor = 0;
};
// Whether two ranks add up their sums of a tensor.
bool share_sums(const ShardedTensor& tensor, const Sharding& sharding, RankPlace a, RankPlace b);
// Returns for each rank (tensor ranks within data ranks) the sums over all ranks that share the
// tensor with it.
std::vector<reference::Sums> summed(const ShardedTensor& tensor, const Sharding& sharding,
                                    const std::vector<reference::Sums>& sums);
// Returns the mean of the data ranks' gradients of a whole tensor, summed from rank `first` on.
std::vector<float> mean_from(const std::vector<std::vector<float>>& gradients, std::size_t first);
// Throws Error for sharding outside dp >= 1, tp >= 1, zero 0 to 2.
void check(const Sharding& sharding);

template <typename Rule>
struct Sharded {
  struct Shard {
    RankPlace place;
    reference::Part part;
    std::vector<float> p;
    typename Rule::State state;
  };

  Rule rule;
  Sharding sharding;
  std::vector<ShardedTensor> tensors;
  std::vector<std::vector<Shard>> shards;  // [tensor][rank]
  std::vector<ParameterGroup> group_of;    // one for each tensor; empty: the options apply to all
  int step = 0;
  std::size_t collectives = 0, summed_values = 0;  // counts of the last step, for one rank
};

// Returns the elements of a whole tensor that belong to a part.
std::vector<float> elements_of(const reference::Part& part, const std::vector<float>& whole);

// `initial` has all tensors, undivided.
template <typename Rule>
Sharded<Rule> sharded(const Rule& rule, const Sharding& sharding,
                      const std::vector<ShardedTensor>& tensors,
                      const std::vector<std::vector<float>>& initial) {
  check(sharding);
  Sharded<Rule> o{rule, sharding, tensors, {}, {}};
  if constexpr (requires { rule.options.zero_switched_off; }) {
    if (rule.options.zero_switched_off) o.sharding.zero = 0;
  }
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    auto& ranks = o.shards.emplace_back();
    for (int d = 0; d < sharding.dp; ++d) {
      for (int r = 0; r < sharding.tp; ++r) {
        const auto part = part_of(tensors[t], o.sharding, d, r);
        ranks.push_back({{d, r}, part, elements_of(part, initial[t]), rule.state(part)});
      }
    }
  }
  return o;
}

// `gradients` has the gradients of the data ranks, [tensor][data rank], for whole tensors. Except
// with ZeRO-2, a single averaged gradient can replace them.
template <typename Rule>
void step(Sharded<Rule>& o, const std::vector<std::vector<std::vector<float>>>& gradients) {
  ++o.step;
  o.collectives = o.summed_values = 0;
  for (std::size_t t = 0; t < o.tensors.size(); ++t) {
    auto& shards = o.shards[t];
    Rule rule = o.rule;
    rule.options = in_group(rule.options, o.group_of, t);
    std::vector<std::vector<float>> means, g;
    const std::size_t own_means = o.sharding.zero == 2 ? gradients[t].size() : 1;
    for (std::size_t d = 0; d < own_means; ++d) means.push_back(mean_from(gradients[t], d));
    for (auto& shard : shards) {
      const std::size_t mean = static_cast<std::size_t>(shard.place.data) % own_means;
      g.push_back(elements_of(shard.part, means[mean]));
    }
    const auto view = [&](std::size_t r) {
      return reference::View{shards[r].part, shards[r].p, g[r]};
    };
    for (int round = 0; round < rule.rounds(o.step); ++round) {
      std::vector<reference::Sums> sums;
      for (std::size_t r = 0; r < shards.size(); ++r) {
        sums.push_back(rule.sums(round, view(r), shards[r].state, o.step));
      }
      if (shards.size() > 1 && !sums[0].empty()) {
        ++o.collectives;
        o.summed_values += sums[0].size();
      }
      const auto totals = summed(o.tensors[t], o.sharding, sums);
      for (std::size_t r = 0; r < shards.size(); ++r) {
        rule.take(round, view(r), shards[r].state, totals[r], o.step);
      }
    }
    for (std::size_t r = 0; r < shards.size(); ++r) rule.apply(view(r), shards[r].state, o.step);
  }
}

// Returns the whole tensor t on a data rank: its own copy or, with ZeRO, the gathered one. Checks
// that ranks with the same elements have the same bits.
template <typename Rule>
std::vector<float> weights(const Sharded<Rule>& o, std::size_t t) {
  std::vector<float> whole(o.tensors[t].shape.elements());
  std::vector<bool> seen(whole.size());
  for (const auto& shard : o.shards[t]) {
    for (std::size_t k = 0; k < shard.part.size(); ++k) {
      const std::size_t e = shard.part.row(k) * shard.part.whole.columns + shard.part.column(k);
      LAMBCAST_CHECK(!seen[e] || whole[e] == shard.p[k], "replicas of element {} differ", e);
      whole[e] = shard.p[k];
      seen[e] = true;
    }
  }
  for (const bool element : seen) LAMBCAST_CHECK(element, "an element that no rank keeps");
  return whole;
}

}  // namespace lambcast::emulated
