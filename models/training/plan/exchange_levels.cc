#include "models/training/plan/exchange_levels.h"

#include <algorithm>

#include "models/training/plan/gradient_owners.h"

namespace lambcast {
namespace {

// Sites are nodes here: their ranks hold the same weights.
ExchangeLevels levels_of_sites(const Exchange& exchange, const ProcessGroup& ranks) {
  const int site = site_ranks(exchange);
  const ShardGroups groups = shard_groups(ranks, site);
  if (!exchange.is_two_level())
    return {ExchangePattern::sharded, groups.shard, groups.copies, site};
  ProcessGroup leaders = groups.copies;
  leaders.siblings = ranks.siblings;
  return {ExchangePattern::two_level, groups.shard, leaders};
}

}  // namespace

ExchangeLevels levels_of(const Exchange& exchange, const ProcessGroup& ranks) {
  if (exchange.every > 1) return levels_of_sites(exchange, ranks);
  const ExchangePattern pattern = exchange.pattern.value_or(ExchangePattern::flat);
  ExchangeLevels levels{pattern, {}, ranks};
  if (pattern == ExchangePattern::flat) return levels;
  levels.node = ranks;
  levels.node.ranks = std::min(ranks.ranks, ranks.per_node);
  if (pattern == ExchangePattern::two_level) {
    levels.between = node_leaders(ranks);
  } else if (levels.node.ranks > 1) {
    const ShardGroups groups = shard_groups(ranks, levels.node.ranks);
    levels = {pattern, groups.shard, groups.copies, levels.node.ranks};
  }
  return levels;
}

StepPart sum_in_node(const ExchangeLevels& levels, double bytes) {
  if (levels.is_sharded())
    return {"reduce_scatter in the node", Category::gradient_comm,
            call(levels.node, Op::reduce_scatter, bytes)};
  return {"reduce in the node", Category::gradient_comm, call(levels.node, Op::reduce, bytes)};
}

StepPart hand_out_in_node(const ExchangeLevels& levels, double bytes) {
  if (levels.is_sharded())
    return {"all_gather in the node", Category::gradient_comm,
            call(levels.node, Op::all_gather, bytes)};
  return {"broadcast in the node", Category::gradient_comm,
          call(levels.node, Op::broadcast, bytes)};
}

}  // namespace lambcast
