#include "models/training/plan/exchange_levels.h"

#include <algorithm>

namespace lambcast {
namespace {

// Returns the levels with sites in place of nodes. The ranks of a site hold the same weights.
ExchangeLevels levels_of_sites(const Exchange& exchange, const ProcessGroup& ranks) {
  const int site = site_ranks(exchange);
  const ShardGroups groups = shard_groups(ranks, site);
  if (!exchange.is_two_level())
    return {ExchangePattern::sharded, groups.shard, groups.copies, site};
  ProcessGroup leaders = groups.copies;
  leaders.siblings = ranks.siblings;
  return {*exchange.pattern, groups.shard, leaders};
}

}  // namespace

ExchangeLevels levels_of(const Exchange& exchange, const ProcessGroup& ranks) {
  if (exchange.every > 1) return levels_of_sites(exchange, ranks);
  const ExchangePattern pattern = exchange.pattern.value_or(ExchangePattern::flat);
  ExchangeLevels levels{pattern, {}, ranks};
  if (pattern == ExchangePattern::flat) return levels;
  levels.node = ranks;
  levels.node.ranks = std::min(ranks.ranks, ranks.per_node);
  if (exchange.is_two_level()) {
    levels.between = node_leaders(ranks);
  } else if (levels.node.ranks > 1) {
    const ShardGroups groups = shard_groups(ranks, levels.node.ranks);
    levels = {pattern, groups.shard, groups.copies, levels.node.ranks};
  }
  return levels;
}

std::vector<Owners> summing(std::vector<Owners> owners, const Exchange& exchange) {
  if (site_ranks(exchange) > 1)
    for (Owners& of : owners) of.shards.copies = {};
  return owners;
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

std::vector<StepPart> through_hub(const std::vector<StepPart>& parts,
                                  const ExchangeLevels& levels) {
  const double ranks = levels.between.ranks;
  const double port = levels.pattern == ExchangePattern::relay ? ranks : 1;
  std::vector<StepPart> all;
  const auto add = [&](const char* name, double bytes) {
    all.push_back(
        {name, Category::gradient_comm, call(levels.between, Op::send_recv, port * bytes)});
  };
  bool sent = false;  // in an earlier phase
  for (const StepPart& part : parts) {
    const Call* const call = std::get_if<Call>(&part.work);
    if (call == nullptr || call->group != levels.between) {
      all.push_back(part);
      continue;
    }
    const double bytes = call->bytes.value();
    const bool messages = call->op == Op::all_gather && !sent;
    if (!sent || call->op != Op::all_gather) add("put", messages ? bytes / ranks : bytes);
    if (call->op != Op::all_to_all) add("get", bytes);
    sent = call->op == Op::all_to_all;
  }
  return all;
}

}  // namespace lambcast
