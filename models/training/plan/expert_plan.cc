#include "models/training/plan/expert_plan.h"

#include <algorithm>

#include "models/training/plan/expert_rows.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {
namespace {

using parallel::Axis;

// Share of the launches of a block with experts that are in the forward pass: assumed.
constexpr double forward_launch_share = 0.35;

// Launches of both passes in 8 and 4 bits. Fitted to Megatron-Bridge performance summary 26.02:
// DeepSeek-V3 on B200 (32 experts on a rank) and Qwen3-235B on B300 (overlapped).
constexpr double expert_launches = 32;        // per expert
constexpr double overlapped_launches = 2060;  // per block that is divided into pieces
// Launches in 16 bits, as a share of those in 8 and 4 bits. An expert's products: 6 of 22 kernels,
// since 4 casts and 12 re-orderings of scales are not needed (counted in Transformer Engine). A
// block: about 65 of 80. This rough count was chosen knowing one measured figure (Megatron's model
// zoo, Qwen3-235B on H100, overlapped), so it counts as fitted.
constexpr double expert_launches_16_bit = 6.0 / 22;
constexpr double overlapped_launches_16_bit = 0.8;

Call exchange(const ProcessGroup& group, double bytes) {
  return {group, Backend::nccl, Op::all_to_all, Bytes(bytes)};
}

// Return the members of a group on one node, and one of the groups that have a member on each node,
// in the same position.
ProcessGroup on_node(ProcessGroup group) {
  group.ranks = group.per_node;
  group.node_stride = 1;
  return group;
}
ProcessGroup across_nodes(ProcessGroup group) {
  group.ranks = group.nodes();
  group.siblings *= group.per_node;
  group.per_node = group.stride = 1;
  return group;
}

// Returns the ranks of a tensor group that have the same tokens.
int same_tokens(const Parallelism& how) { return how.sequence_parallel ? 1 : how.layout.tp; }

// Returns the share of a rank's tokens whose copies it sends: each rank of a divided expert
// receives all of them.
double share_sent(const Parallelism& how) {
  return std::min(1.0, static_cast<double>(how.layout.expert_tp()) / same_tokens(how));
}

// Returns the number of ranks of a divided expert that have tokens of their own, which it gathers.
int ranks_gathered(const Parallelism& how) {
  return std::max(1, how.layout.expert_tp() / same_tokens(how));
}

ExpertWork work_of(const ModelShape& model, const Parallelism& how, const ProcessGroup& group,
                   double tokens, std::int64_t ffn) {
  const double copies = static_cast<double>(model.experts_per_token) * rows_per_choice(how);
  ExpertWork work;
  work.all = model.experts;
  work.local = model.experts / how.layout.ep;
  work.ffn = ffn / how.layout.expert_tp();
  work.shared_ffn = model.shared_ffn / how.layout.tp;
  work.tokens = tokens;
  work.rows = tokens * share_sent(how) * copies * ranks_gathered(how);
  work.sent = tokens * copies;
  work.received = work.rows;
  if (how.experts.routing == Routing::one_hot) work.one_hot = model.experts_per_token;
  if (how.experts.dispatch == Dispatch::deduplicated) {
    work.sent = 0;
    work.received = tokens * share_sent(how) * ranks_gathered(how) *
                    owners_met(model.experts, model.experts_per_token, group.ranks);
  }
  return work;
}

// Adds the collectives inside tensor groups: over the ranks of a divided expert, and over the ranks
// that have the same tokens and send a share each.
void add_row_calls(const Parallelism& how, const parallel::RankGrid& experts, double hidden,
                   ExpertPlan& plan) {
  const double rows = how.activation_bytes() * plan.block.experts->rows * hidden;
  const auto over = [](const ProcessGroup& group, Op op, double bytes) {
    return Call{group, Backend::nccl, op, Bytes(bytes)};
  };
  const ProcessGroup expert = parallel::group(experts, {Axis::tp});
  if (ranks_gathered(how) > 1) {
    plan.rows_gather = over(expert, Op::all_gather, rows);
    plan.rows_scatter = over(expert, Op::reduce_scatter, rows);
  } else if (expert.ranks > 1) {
    plan.rows_sum = over(expert, Op::all_reduce, rows);
  }
  if (share_sent(how) < 1)
    plan.shares_gather = over(parallel::group(parallel::dense_grid(how.layout), {Axis::tp}),
                              Op::all_gather, rows / share_sent(how));
}

}  // namespace

const std::vector<std::string>& routing_names() {
  static const std::vector<std::string> names{"sparse", "one_hot"};
  return names;
}

const std::vector<std::string>& dispatch_names() {
  static const std::vector<std::string> names{"all_to_all", "hierarchical", "deduplicated"};
  return names;
}

const std::vector<std::string>& expert_kernels_names() {
  static const std::vector<std::string> names{"each", "grouped"};
  return names;
}

double visits(const ExpertUse& use, std::int64_t per_token) {
  return static_cast<double>(per_token) *
         (use.capacity_factor > 0 ? use.capacity_factor : use.imbalance.value);
}

double owners_met(std::int64_t experts, std::int64_t per_token, int owners) {
  const double others = static_cast<double>(experts - experts / owners);
  double none = 1;
  for (std::int64_t j = 0; j < per_token; ++j) {
    const auto chosen = static_cast<double>(j);
    none *= std::max(0.0, others - chosen) / (static_cast<double>(experts) - chosen);
  }
  return owners * (1 - none);
}

std::optional<ExpertPlan> expert_plan(const ModelShape& model, const Parallelism& how,
                                      const BlockWork& dense) {
  if (model.experts == 0) return std::nullopt;
  const parallel::RankGrid grid = parallel::expert_grid(how.layout);
  const ProcessGroup group = parallel::group(grid, {Axis::ep});
  const int parts = how.layout.cp * (how.sequence_parallel ? how.layout.tp : 1);
  const double tokens = static_cast<double>(dense.micro_batch * dense.seq_len) / parts;
  const auto h = static_cast<double>(dense.hidden);

  ExpertPlan plan;
  plan.block = dense;
  if (model.pyramid.empty()) plan.block.ffn = model.ffn;
  plan.block.experts = work_of(model, how, group, tokens, plan.block.ffn);
  plan.layers = model.expert_layers;
  plan.overlapped = how.experts.overlapped;
  plan.predicted_layers = static_cast<int>(model.predicted_layers);
  if (how.experts.kernels == ExpertKernels::each) {
    const bool casts = bytes_per_element(how.format) < 2;
    plan.launches = expert_launches * (casts ? 1 : expert_launches_16_bit) *
                    static_cast<double>(plan.block.experts->local);
    if (plan.overlapped)
      plan.least_launches =
          overlapped_launches * (casts ? 1 : overlapped_launches_16_bit) + plan.launches;
  }
  add_row_calls(how, grid, h, plan);
  if (group.ranks == 1) return plan;
  const double copies = visits(how.experts, model.experts_per_token);
  const bool once = how.experts.dispatch == Dispatch::deduplicated;
  const auto bytes_to = [&](int owners) {
    return how.activation_bytes() * tokens * share_sent(how) * h *
           (once ? owners_met(model.experts, model.experts_per_token, owners) : copies);
  };
  const int nodes = group.nodes();
  if (nodes == 1 || how.experts.dispatch == Dispatch::all_to_all) {
    plan.inside = exchange(group, bytes_to(group.ranks));
    return plan;
  }
  plan.at_once = once;
  plan.between = exchange(across_nodes(group), bytes_to(nodes));
  if (group.per_node > 1) plan.inside = exchange(on_node(group), bytes_to(group.ranks));
  return plan;
}

Provenance expert_launches_from() {
  return {Kind::fitted, "Megatron-Bridge performance summary 26.02, DeepSeek-V3 and Qwen3-235B"};
}

HostTime host_time(const ExpertPlan& plan, Duration launch) {
  const Duration shown = launch.scaled(plan.launches), least = launch.scaled(plan.least_launches);
  const double f = forward_launch_share;
  return {shown.scaled(f), shown.scaled(1 - f), least.scaled(f), least.scaled(1 - f)};
}

}  // namespace lambcast
