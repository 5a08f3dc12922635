#include "models/parallel/layout_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace lambcast::parallel {
namespace {

struct Findings {
  std::vector<Finding> list;

  void add(Severity severity, std::string code, std::string_view key, std::string_view sentence) {
    list.push_back({severity, std::move(code), describe({"", 0, std::string(key)}, sentence)});
  }
  void refuse(std::string code, std::string_view key, std::string_view sentence) {
    add(Severity::error, std::move(code), key, sentence);
  }
};

void check_world(Findings& out, const ParallelLayout& layout, int gpus) {
  const std::int64_t model = std::int64_t{layout.tp} * layout.cp * layout.pp;
  if (gpus % model != 0)
    out.refuse("layout-world", "gpus",
               fmt::format("{} GPUs are not divisible by tp {} x cp {} x pp {}", gpus, layout.tp,
                           layout.cp, layout.pp));
  else if (layout.world() != gpus)
    out.refuse("layout-world", "dp",
               fmt::format("tp {} x cp {} x dp {} x pp {} are {} ranks, not {}", layout.tp,
                           layout.cp, layout.dp, layout.pp, layout.world(), gpus));
}

void check_tensor(Findings& out, const ParallelLayout& layout, const ModelShape& shape) {
  const int tp = layout.tp;
  if (tp == 1) return;
  const bool divides =
      std::any_of(shape.tensors.begin(), shape.tensors.end(), [](const Tensor& tensor) {
        return tensor.layer >= 0 && tensor.split != TensorSplit::replicated;
      });
  if (!divides) {
    out.refuse("layout-family", "tp",
               fmt::format("the family '{}' has no matrices that tensor parallelism divides",
                           shape.family));
    return;
  }
  const auto divisible = [&](const char* code, std::int64_t count, const char* what) {
    if (count % tp != 0)
      out.refuse(code, "tp", fmt::format("{} {} are not divisible by tp {}", count, what, tp));
  };
  divisible("layout-heads", shape.heads, "heads");
  const bool all_experts = std::find(shape.expert_layers.begin(), shape.expert_layers.end(),
                                     false) == shape.expert_layers.end() &&
                           shape.experts > 0;
  if (!all_experts)
    divisible("layout-ffn", shape.dense_ffn > 0 ? shape.dense_ffn : shape.ffn,
              "columns of the feed-forward");
  if (shape.kv_heads % tp == 0) return;
  if (tp % shape.kv_heads != 0)
    out.refuse("layout-kv-heads", "tp",
               fmt::format("neither divides the other: {} kv_heads and tp {}", shape.kv_heads, tp));
  else if (shape.kv_heads < shape.heads)
    out.add(Severity::note, "layout-repeated-keys", "tp",
            fmt::format("{} kv_heads on tp {}: each is held {} times", shape.kv_heads, tp,
                        tp / shape.kv_heads));
}

void check_pipeline(Findings& out, const ParallelLayout& layout, const ModelShape& shape,
                    const LayoutUse& use) {
  const Pipeline pipeline{use.schedule, layout.pp, layout.virtual_stages, use.micro_batches};
  if (const std::string why_not = refusal(pipeline); !why_not.empty())
    out.refuse("layout-schedule", "pipeline_schedule", why_not);
  if (layout.pp == 1 && layout.virtual_stages > 1)
    out.refuse("layout-schedule", "interleave", "needs a pipeline: pp is 1");
  if (layout.pp > 1 && shape.shared_block)
    out.refuse("layout-layers", "pp",
               "all blocks share their weights (ALBERT), so stages cannot divide them");
  const auto layers = static_cast<int>(shape.layers);
  if (const std::string why_not = refusal(use.split, layers, pipeline.positions());
      !why_not.empty() && pipeline.positions() > 1)
    out.refuse("layout-layers", "pp", why_not);
  const bool needs_twice =
      use.schedule == PipelineSchedule::zb2p || use.schedule == PipelineSchedule::zbv;
  const int enough = needs_twice ? 2 * layout.pp : layout.pp;
  if (layout.pp > 1 && use.micro_batches < enough)
    out.add(Severity::note, "layout-few-micro-batches", "pp",
            fmt::format("{} never {} {} stages, {} would",
                        use.micro_batches == 1 ? "1 micro batch"
                                               : fmt::format("{} micro batches", use.micro_batches),
                        use.micro_batches == 1 ? "fills" : "fill", layout.pp, enough));
}

void check_sequence(Findings& out, const ParallelLayout& layout, const ModelShape& shape,
                    const LayoutUse& use) {
  if (use.exchanges_heads && layout.cp > 1 && shape.heads % (layout.tp * layout.cp) != 0)
    out.refuse("layout-heads", "cp",
               fmt::format("{} heads are not divisible by tp {} x cp {}, over which they are "
                           "exchanged",
                           shape.heads, layout.tp, layout.cp));
  if (use.sequence_parallel && layout.tp == 1)
    out.add(Severity::note, "layout-no-effect", "sequence_parallel",
            "has no effect: it divides the sequence over tp, which is 1");
  if (use.seq_len == 0) {
    if (layout.cp > 1) out.refuse("layout-sequence", "cp", "samples have no sequence to divide");
    return;
  }
  // A rank takes two parts of a causal sequence, one from each end, so that ranks have equal work.
  const int ends = use.exchanges_heads ? 1 : 2;
  if (layout.cp > 1 && use.seq_len % (ends * layout.cp) != 0)
    out.refuse("layout-sequence", "cp",
               fmt::format("a sequence of {} is not divisible by {}cp {}", use.seq_len,
                           use.exchanges_heads ? "" : "2 x ", layout.cp));
  else if (use.sequence_parallel && use.seq_len / layout.cp % layout.tp != 0)
    out.refuse("layout-sequence", "sequence_parallel",
               fmt::format("{} tokens of a sequence are not divisible by tp {}",
                           use.seq_len / layout.cp, layout.tp));
}

void check_experts(Findings& out, const ParallelLayout& layout, const ModelShape& shape,
                   const LayoutUse& use) {
  if (layout.ep == 1 && layout.etp == 0 && shape.experts == 0) return;
  if (shape.experts == 0) {
    out.refuse("layout-experts", layout.ep > 1 ? "ep" : "etp",
               fmt::format("{} has no experts", shape.name));
    return;
  }
  if (use.experts_need_parts && layout.tp > 1 && !use.sequence_parallel)
    out.refuse("layout-experts", "sequence_parallel",
               fmt::format("Megatron-LM trains experts with tp {} only with sequence parallelism; "
                           "try: --sequence-parallel true, or another --framework",
                           layout.tp));
  if (shape.ffn % layout.expert_tp() != 0)
    out.refuse("layout-ffn", layout.etp == 0 ? "tp" : "etp",
               fmt::format("{} columns of an expert are not divisible by {} {}", shape.ffn,
                           layout.etp == 0 ? "tp" : "etp", layout.expert_tp()));
  if (shape.experts % layout.ep != 0)
    out.refuse("layout-experts", "ep",
               fmt::format("{} experts are not divisible by ep {}", shape.experts, layout.ep));
  if (layout.etp != 0 && layout.tp * layout.cp * layout.dp % (layout.etp * layout.ep) != 0)
    out.refuse("layout-experts", "ep",
               fmt::format("tp {} x cp {} x dp {} is not divisible by etp {} x ep {}", layout.tp,
                           layout.cp, layout.dp, layout.etp, layout.ep));
  else if (layout.etp == 0 && layout.cp * layout.dp % layout.ep != 0)
    out.refuse(
        "layout-experts", "ep",
        fmt::format("cp {} x dp {} is not divisible by ep {}", layout.cp, layout.dp, layout.ep));
}

// Returns the distance in ranks from one pipeline stage to the next.
int stage_stride(const RankGrid& grid) {
  Coordinates second{};
  second[static_cast<std::size_t>(Axis::pp)] = 1;
  return rank_of(grid, second);
}

void check_stages_of_experts(Findings& out, const ParallelLayout& layout, const LayoutUse& use) {
  if (layout.ep == 1 || layout.pp == 1 ||
      layout.tp * layout.cp * layout.dp % (layout.expert_tp() * layout.ep) != 0)
    return;
  ParallelLayout apart = layout;
  if (!use.one_mesh) apart.ep = 1;
  if (stage_stride(dense_grid(apart)) == stage_stride(expert_grid(layout))) return;
  out.refuse("layout-experts", "order",
             fmt::format("in {} the pipeline stages of experts and of all other layers lie on "
                         "different ranks; try: tp-cp-ep-dp-pp",
                         to_text(layout.order)));
}

void check_placement(Findings& out, const ParallelLayout& layout) {
  if (layout.tp > layout.gpus_per_node)
    out.add(Severity::warning, "layout-beyond-node", "tp",
            fmt::format("{} ranks on nodes of {} GPUs: the sums of every layer leave the node",
                        layout.tp, layout.gpus_per_node));
  const RankGrid grid = dense_grid(layout);
  const std::pair<const char*, AxisSet> groups[] = {{"tp", {Axis::tp}},
                                                    {"cp", {Axis::cp}},
                                                    {"dp", {Axis::dp, Axis::cp, Axis::ep}},
                                                    {"pp", {Axis::pp}}};
  for (const auto& [key, members] : groups)
    if (!lies_evenly(grid, members))
      out.add(
          Severity::warning, "layout-uneven", key,
          fmt::format("its groups are not placed alike on nodes of {} GPUs; all are forecast as "
                      "that of rank 0",
                      layout.gpus_per_node));
}

}  // namespace

std::vector<Finding> check(const ParallelLayout& layout, const ModelShape& shape,
                           const LayoutUse& use) {
  Findings out;
  check_world(out, layout, use.gpus);
  check_tensor(out, layout, shape);
  check_pipeline(out, layout, shape, use);
  check_sequence(out, layout, shape, use);
  check_experts(out, layout, shape, use);
  check_stages_of_experts(out, layout, use);
  check_placement(out, layout);
  return std::move(out.list);
}

}  // namespace lambcast::parallel
