#include "experiments/output/step_plan_text.h"

#include <fmt/format.h>

#include <string_view>

namespace lambcast {
namespace {

std::string describe(const PassWork& work) {
  if (work.from == 0 && work.to == 1) return "a micro batch";
  return fmt::format("{:.4g} to {:.4g} of a micro batch", work.from, work.to);
}

std::string describe(const StageWork& work) {
  return fmt::format("stage {}, segment {} of its micro batches", work.stage, work.segment);
}

std::string describe(const MemoryWork& work) {
  return fmt::format("{} of GPU memory", to_text(Bytes(work.bytes)));
}

std::string describe(const KernelWork& work) {
  const Passes& passes = work.passes;
  return fmt::format("{:.0f} elements x {:.4g} B, {:.0f} launches, {:.0f} waits", work.elements,
                     passes.bytes_per_element,
                     passes.launches + passes.launches_per_tensor * work.tensors,
                     passes.syncs + passes.syncs_per_tensor * work.tensors);
}

std::string describe(const ProductWork& work) {
  return fmt::format("{:.4g} TFLOP at {:.3g} % of the peak", work.flops / 1e12,
                     100 * work.share_of_peak.value);
}

std::string describe(const HostCopy& work) {
  return fmt::format("{} down, {} up, {}", to_text(Bytes(work.down_bytes)),
                     to_text(Bytes(work.up_bytes)), work.pinned ? "pinned" : "pageable");
}

std::string describe(const HostUpdate& work) {
  return fmt::format("{} of host memory, {} ranks at once", to_text(Bytes(work.bytes)), work.ranks);
}

// Lists the fields of a ProcessGroup, without those at their default.
std::string describe(const ProcessGroup& group) {
  std::string text = fmt::format("{} ranks ({} per node", group.ranks, group.per_node);
  if (group.stride > 1) text += fmt::format(", stride {}", group.stride);
  if (group.node_stride > 1) text += fmt::format(", node stride {}", group.node_stride);
  if (group.siblings > 1) text += fmt::format(", {} siblings", group.siblings);
  return text + ")";
}

std::string describe(const Call& call) {
  return fmt::format("{} of {} over {} by {}{}{}", name_of(call.op), to_text(call.bytes),
                     describe(call.group), traits_of(call.backend).in_words,
                     call.algorithm.empty() ? "" : ", ", call.algorithm);
}

std::string describe(const Wait&) { return "order only"; }

std::string describe(const Slowdown& work) {
  return fmt::format("lost to: {}", describe(work.beside));
}

std::string waits_for(const PlanOp& op, std::size_t index) {
  if (op.after.empty()) return "-";
  if (op.after.size() == 1 && op.after[0] + 1 == index) return "^";
  return fmt::format("{}", fmt::join(op.after, " "));
}

std::string operations(const StepPlan& plan) {
  std::string out = fmt::format("{:>4} {:>8} {:>5} {:>6}  {:<13} {}\n{:>22}{}\n", "op", "after",
                                "stage", "times", "stream", "part", "", "name: what");
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const PlanOp& op = plan.ops[i];
    out += fmt::format("{:>4} {:>8} {:>5} {:>6}  {:<13} {}\n{:>22}{}: {}\n", i, waits_for(op, i),
                       op.rank_class, op.times, name_of(op.stream), name_of(op.part), "", op.name,
                       std::visit([](const auto& work) { return describe(work); }, op.work));
  }
  return out;
}

// Lists calls, one per line, each followed by the text that `also` returns for it. Absent calls
// have no line.
class CallLines {
 public:
  explicit CallLines(const AboutCall& also) : also_(also) {}

  void add(std::string_view what, const std::optional<Call>& call) {
    if (call) text_ += fmt::format("     {}, {}{}\n", what, describe(*call), also_(*call));
  }
  void add(std::string_view what, const std::vector<Call>& calls) {
    for (const Call& call : calls) add(what, std::optional(call));
  }
  void title(const char* of) { text_ += fmt::format("    {}\n", of); }
  const std::string& text() const { return text_; }

 private:
  const AboutCall& also_;
  std::string text_;
};

// Lists the collectives inside the passes of each block; pipeline_plan.h states how often each
// runs.
std::string of_blocks(const PipelinePlan& plan, const AboutCall& also) {
  CallLines lines(also);
  const auto add = [&](const ActivationCalls& calls, const char* of = nullptr) {
    if (of != nullptr && (calls.sum || calls.gather)) lines.title(of);
    lines.add("tensor parallel, activations summed", calls.sum);
    lines.add("checkpoints gathered", calls.checkpoint);
    lines.add("sequence parallel, activations gathered", calls.gather);
    lines.add("sequence parallel, activations scattered", calls.scatter);
  };
  if (plan.block.encoder_tokens == 0) {
    add(plan.activations);
  } else {
    add(plan.stacks.front().activations, "of the encoder");
    add(plan.stacks.back().activations, "of the decoder, with the encoder's for keys and values");
  }
  lines.add("adapters, of their rank", plan.adapters_gather);
  lines.add("adapters, tokens for columns", plan.adapters_exchange);
  lines.add("context parallel, keys and values", plan.keys_values);
  lines.add("context parallel, their gradients", plan.keys_gradients);
  lines.add("context parallel, queries or context", plan.queries_exchange);
  lines.add("context parallel, keys or values", plan.keys_exchange);
  lines.add("weights gathered, forward", plan.weights_gather);
  const std::string kept =
      plan.kept_blocks > 0 ? fmt::format(", but of the last {} blocks", plan.kept_blocks) : "";
  lines.add("weights gathered, backward" + kept, plan.weights_gather_again);
  lines.add("gradients of weights reduced", plan.gradients_reduce);
  lines.add("experts' weights gathered", plan.expert_weights_gather);
  lines.add("experts' gradients scattered", plan.expert_gradients_scatter);
  if (plan.experts) {
    lines.add("tokens to experts and back", plan.experts->inside);
    lines.add("and between nodes", plan.experts->between);
    lines.add("rows gathered inside experts", plan.experts->rows_gather);
    lines.add("rows scattered", plan.experts->rows_scatter);
    lines.add("partial results of rows summed", plan.experts->rows_sum);
    lines.add("results of the shares gathered", plan.experts->shares_gather);
  }
  return lines.text();
}

// Lists the chunks of a stage and the calls of its passes outside the blocks.
std::string of_stage(const PipelinePlan& plan, int stage, const AboutCall& also) {
  CallLines lines(also);
  int blocks = 0;
  bool embedding = false, head = false;
  std::optional<Call> sends;
  for (int chunk = 0; chunk < plan.pipeline.chunks; ++chunk) {
    const int position = plan.pipeline.position(stage, chunk);
    const parallel::ChunkContent& content = plan.chunks[static_cast<std::size_t>(position)];
    blocks += content.layers;
    embedding = embedding || content.embedding;
    head = head || content.head;
    if (!sends && position + 1 < plan.pipeline.positions())
      sends = plan.sends[static_cast<std::size_t>(position)];
  }
  if (embedding)
    lines.add("embedding's rows summed",
              (plan.stacks.empty() ? plan.activations : plan.stacks.front().activations).sum);
  if (head) lines.add("loss summed, three times", plan.loss_sum);
  if (embedding || head) {
    lines.add("outer weights gathered", plan.outer_weights_gather);
    lines.add("outer gradients reduced", plan.outer_gradients_reduce);
  }
  lines.add("to the next stage, and its gradient back", sends);
  if (sends) lines.add("what ranks sent in parts", plan.sends_gather);
  return fmt::format(" {} blocks{}{}\n{}", blocks, embedding ? ", embedding" : "",
                     head ? ", head" : "", lines.text());
}

}  // namespace

std::string inside_passes(const PipelinePlan& plan, const AboutCall& also) {
  const std::string blocks = of_blocks(plan, also);
  std::string out = "inside the passes of a micro batch\n";
  if (!blocks.empty()) out += "   each block of every stage\n" + blocks;
  for (int first = 0, next = 0; first < plan.pipeline.stages; first = next) {
    const std::string text = of_stage(plan, first, also);
    for (next = first + 1; next < plan.pipeline.stages && of_stage(plan, next, also) == text;)
      ++next;
    out += next == first + 1 ? fmt::format("   stage {}:", first)
                             : fmt::format("   stages {} to {}, each:", first, next - 1);
    out += text;
  }
  return out;
}

std::string step_plan_text(const StepPlan& plan) {
  const auto nothing = [](const Call&) { return std::string(); };
  return operations(plan) + (plan.pipeline ? inside_passes(*plan.pipeline, nothing) : "");
}

}  // namespace lambcast
