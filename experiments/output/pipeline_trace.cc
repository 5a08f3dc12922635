#include "experiments/output/pipeline_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "experiments/output/trace.h"
#include "models/training/price/pass_price.h"
#include "sim/base/json.h"

namespace lambcast {
namespace {

using parallel::SlotKind;

std::string_view slot_words(SlotKind kind) {
  constexpr std::array<std::string_view, 4> words{"forward", "backward", "input gradient",
                                                  "weight gradient"};
  return words[static_cast<std::size_t>(kind)];
}

std::string category_of(SlotKind kind) {
  return kind == SlotKind::forward ? "forward" : "backward";
}

// Returns the payload of a collective inside a pass.
std::string cargo_of(const PipelinePlan& plan, const Call* call) {
  const auto is = [&](const std::optional<Call>& of) { return of && &*of == call; };
  const auto carries = [&](const ActivationCalls& of) {
    return is(of.sum) || is(of.gather) || is(of.scatter) || is(of.checkpoint);
  };
  if (carries(plan.activations)) return "activations";
  for (const BlocksAlike& stack : plan.stacks)
    if (carries(stack.activations)) return "activations";
  if (is(plan.adapters_gather) || is(plan.adapters_exchange)) return "adapters";
  if (is(plan.loss_sum)) return "loss";
  if (is(plan.keys_values)) return "keys and values";
  if (is(plan.keys_gradients)) return "gradients of keys and values";
  if (is(plan.queries_exchange)) return "queries";
  if (is(plan.keys_exchange)) return "keys";
  if (is(plan.weights_gather) || is(plan.weights_gather_again)) return "weights";
  if (is(plan.outer_weights_gather)) return "weights of embedding and head";
  if (is(plan.expert_weights_gather)) return "weights of experts";
  if (is(plan.expert_gradients_scatter)) return "gradients of experts";
  const auto of_experts = [&](const std::optional<ExpertPlan>& experts) -> std::string {
    if (!experts) return "";
    if (is(experts->inside) || is(experts->between)) return "tokens";
    const bool rows = is(experts->rows_gather) || is(experts->rows_scatter) ||
                      is(experts->rows_sum) || is(experts->shares_gather);
    return rows ? "rows of experts" : "";
  };
  for (const BlocksAlike& stack : plan.stacks)
    if (const std::string cargo = of_experts(stack.experts); !cargo.empty()) return cargo;
  if (const std::string cargo = of_experts(plan.experts); !cargo.empty()) return cargo;
  return "gradients";
}

// Lists the blocks of a chunk in the order of a forward pass, with the embedding and the head.
std::vector<std::string> blocks_of(const parallel::ChunkContent& content) {
  std::vector<std::string> blocks;
  for (int i = 0; i < content.layers; ++i)
    blocks.push_back(fmt::format("block {}", content.first_layer + i));
  if (blocks.empty() && (content.embedding || content.head)) blocks.emplace_back();
  const auto join = [](std::string& block, const char* end, bool before) {
    if (block.empty())
      block = end;
    else
      block = before ? fmt::format("{}, {}", end, block) : fmt::format("{}, {}", block, end);
  };
  if (content.embedding) join(blocks.front(), "embedding", true);
  if (content.head) join(blocks.back(), "head", false);
  return blocks;
}

std::string layers_text(const parallel::ChunkContent& content) {
  std::string layers = content.layers == 0 ? "none"
                                           : fmt::format("{} to {}", content.first_layer,
                                                         content.first_layer + content.layers - 1);
  if (content.embedding) layers = fmt::format("embedding, {}", layers);
  if (content.head) layers += ", head";
  return layers;
}

// A slot with its start and end.
struct TracedSlot {
  parallel::PipelineSlot slot;
  int stage = 0, position = 0;
  Duration begin, end;
};

class PipelineTrace {
 public:
  PipelineTrace(const TrainingPlan& training, const StepRun& step, CollectiveCosts& costs,
                TraceEvents& events)
      : step_(step),
        plan_(*step.plan.pipeline),
        args_(training, costs),
        events_(events),
        price_(price_pipeline(plan_, training, costs, End::expected, 0)) {
    const parallel::Pipeline& pipeline = plan_.pipeline;
    std::int64_t layers = 0;
    for (const auto& content : plan_.chunks) layers += std::max(1, content.layers);
    draws_layers_ = 2 * layers * pipeline.micro_batches <= most_traced_passes;
    forward_.resize(place(pipeline.positions(), 0), {-1, -1});
    backward_ = forward_;
  }

  void write() {
    std::vector<parallel::ChunkTimes> times;
    for (const ChunkPrice& chunk : price_.chunks) times.push_back(chunk.times());
    const auto slots = parallel::pipeline_slots(plan_.pipeline);
    const auto when =
        parallel::pipeline_time(plan_.pipeline, times, plan_.transfers, parallel::Detail::slots);
    for (int stage = 0; stage < plan_.pipeline.stages; ++stage) {
      const auto at = static_cast<std::size_t>(stage);
      const Duration start = plan_.synchronised ? Duration() : price_.time.stages[at].first_start;
      for (std::size_t i = 0; i < slots[at].size(); ++i) {
        const Duration begin = when.slots[at][i].start - start;
        const Duration late = delay(stage, begin);
        write_slot({slots[at][i], stage, plan_.pipeline.position(stage, slots[at][i].chunk),
                    begin + late, when.slots[at][i].end - start + late});
      }
    }
    write_arrows();
  }

 private:
  // Numbers of the slices of a slot and of the send of its output; -1 if there is none.
  struct Drawn {
    int slot, send;
  };

  // Returns the index of a position and micro batch.
  std::size_t place(int position, int micro_batch) const {
    return static_cast<std::size_t>(position * plan_.pipeline.micro_batches + micro_batch);
  }

  // Returns how much later a slot begins than without waits for weights in its segment.
  Duration delay(int stage, Duration start) const {
    Duration planned, delayed;
    for (std::size_t i = 0; i < step_.plan.ops.size(); ++i) {
      const auto* work = std::get_if<StageWork>(&step_.plan.ops[i].work);
      if (!work || work->stage != stage) continue;
      if (planned > start) break;
      const Duration begin = step_.execution.timeline.spans[i].begin.since_start();
      delayed = begin > planned ? begin - planned : Duration();
      planned += step_.prices[i].time;
    }
    return delayed;
  }

  PassPrice price_of(const TracedSlot& of) const {
    const ChunkPrice& chunk = price_.chunks[static_cast<std::size_t>(of.position)];
    switch (of.slot.kind) {
      case SlotKind::forward:
        return chunk.forward;
      case SlotKind::weight_gradient:
        return chunk.weight_gradient;
      case SlotKind::input_gradient:
        return chunk.input_gradient;
      case SlotKind::backward:
        break;
    }
    PassPrice both = chunk.input_gradient;
    const PassPrice& weight = chunk.weight_gradient;
    both.compute += weight.compute;
    both.exposed += weight.exposed;
    both.communication += weight.communication;
    for (const CallsMade& made : weight.calls) add(both.calls, *made.call, made.times);
    return both;
  }

  std::size_t thread(Lane lane, const TracedSlot& of) {
    return events_.thread(lane, static_cast<std::size_t>(of.stage));
  }

  void write_slot(const TracedSlot& of) {
    const PassPrice price = price_of(of);
    const auto& content = plan_.chunks[static_cast<std::size_t>(of.position)];
    const int drawn =
        events_.add({fmt::format("{} {}", slot_words(of.slot.kind), of.slot.micro_batch),
                     category_of(of.slot.kind),
                     thread(Lane::compute, of),
                     of.begin,
                     of.end,
                     {{"micro_batch", of.slot.micro_batch},
                      {"chunk", of.slot.chunk},
                      {"layers", layers_text(content)},
                      {"compute_us", price.compute.us()},
                      {"communication_us", price.communication.us()},
                      {"exposed_us", price.exposed.us()}}});
    write_blocks(of, price, content);
    if (of.slot.kind == SlotKind::weight_gradient) return;
    const bool forward = of.slot.kind == SlotKind::forward;
    (forward ? forward_ : backward_)[place(of.position, of.slot.micro_batch)] = {
        drawn, write_send(of, forward)};
  }

  // Draws the blocks of a slot, each followed by its collectives.
  void write_blocks(const TracedSlot& of, const PassPrice& price,
                    const parallel::ChunkContent& content) {
    std::vector<std::string> blocks = blocks_of(content);
    if (of.slot.kind != SlotKind::forward) std::reverse(blocks.begin(), blocks.end());
    const auto shares = static_cast<std::int64_t>(draws_layers_ ? blocks.size() : 1);
    if (of.begin == of.end || shares == 0) return;
    const Duration length = of.end - of.begin;
    for (std::int64_t i = 0; i < shares; ++i) {
      const double first = static_cast<double>(i) / static_cast<double>(shares);
      const double last = static_cast<double>(i + 1) / static_cast<double>(shares);
      const Duration begin = of.begin + length.scaled(first);
      const Duration end = i + 1 == shares ? of.end : of.begin + length.scaled(last);
      if (draws_layers_)
        events_.add(
            {fmt::format("{} {}", slot_words(of.slot.kind), blocks[static_cast<std::size_t>(i)]),
             category_of(of.slot.kind),
             thread(Lane::layers, of),
             begin,
             end,
             {{"micro_batch", of.slot.micro_batch}}});
      write_collectives(of, price.calls, {i, shares}, begin, end);
    }
  }

  struct Share {
    std::int64_t index, of;
    // If the calls do not divide evenly, the first blocks have one more.
    std::int64_t calls(std::int64_t times) const {
      return times / of + (index < times % of ? 1 : 0);
    }
  };

  void write_collectives(const TracedSlot& of, const std::vector<CallsMade>& calls, Share share,
                         Duration begin, Duration end) {
    Duration all;
    for (const CallsMade& made : calls)
      all += args_.cost(*made.call).time * share.calls(made.times);
    if (all == Duration()) return;
    const double drawn = std::min(1.0, (end - begin) / all);
    Duration at = end - all.scaled(drawn);
    for (const CallsMade& made : calls) {
      const std::int64_t times = share.calls(made.times);
      const Duration time = args_.cost(*made.call).time * times;
      const Duration until = std::min(end, at + time.scaled(drawn));
      if (times == 0 || until == at) continue;
      Json args = args_.of(*made.call);
      args["times"] = times;
      args["time_us"] = time.us();
      args["micro_batch"] = of.slot.micro_batch;
      events_.add({fmt::format("{} {}", name_of(made.call->op), cargo_of(plan_, made.call)),
                   category_of(of.slot.kind), thread(Lane::collectives, of), at, until,
                   std::move(args)});
      at = until;
    }
  }

  // Draws the send to the next or the previous stage; returns -1 if there is none. A send begins
  // after the previous send on its thread.
  int write_send(const TracedSlot& of, bool forward) {
    const int target = of.position + (forward ? 1 : -1);
    if (target < 0 || target == plan_.pipeline.positions()) return -1;
    const int receiver = plan_.pipeline.stage_at(target);
    if (receiver == of.stage) return -1;
    const ChunkPrice& chunk = price_.chunks[static_cast<std::size_t>(of.position)];
    const Duration arrival = of.end + (forward ? chunk.send_forward : chunk.send_backward);
    const std::size_t from = thread(forward ? Lane::activations_sent : Lane::gradients_sent, of);
    const std::size_t to =
        events_.thread(forward ? Lane::activations_received : Lane::gradients_received,
                       static_cast<std::size_t>(receiver));
    Json args = args_.of(plan_.sends[static_cast<std::size_t>(std::min(of.position, target))]);
    args["micro_batch"] = of.slot.micro_batch;
    if (plan_.sends_gather)
      args["then"] = fmt::format("{} over {} ranks", name_of(plan_.sends_gather->op),
                                 plan_.sends_gather->group.ranks);
    const std::string what = forward ? "activations" : "gradients";
    const auto draw = [&](std::size_t on, const std::string& name, const char* key, int other) {
      const Duration begin = std::max(of.end, events_.end_of(on));
      if (begin >= arrival) return -1;
      Json with = args;
      with[key] = fmt::format("stage {}", other);
      return events_.add({fmt::format("{} {} {}", name, what, of.slot.micro_batch), "pipeline", on,
                          begin, arrival, std::move(with)});
    };
    const int sent = draw(from, "send", "to", receiver);
    draw(to, "receive", "from", of.stage);
    return sent;
  }

  void write_arrows() {
    const parallel::Pipeline& pipeline = plan_.pipeline;
    const auto connect = [&](const Drawn& source, const Drawn& target) {
      if (source.send >= 0) events_.arrow(source.slot, source.send);
      events_.arrow(source.send >= 0 ? source.send : source.slot, target.slot);
    };
    for (int position = 0; position + 1 < pipeline.positions(); ++position) {
      if (pipeline.stage_at(position) == pipeline.stage_at(position + 1)) continue;
      for (int m = 0; m < pipeline.micro_batches; ++m) {
        connect(forward_[place(position, m)], forward_[place(position + 1, m)]);
        connect(backward_[place(position + 1, m)], backward_[place(position, m)]);
      }
    }
  }

  const StepRun& step_;
  const PipelinePlan& plan_;
  TraceArgs args_;
  TraceEvents& events_;
  PipelinePrice price_;
  bool draws_layers_ = true;  // false if there are too many layers
  std::vector<Drawn> forward_, backward_;
};

}  // namespace

bool has_traced_slots(const StepPlan& plan) {
  if (!plan.pipeline) return false;
  const parallel::Pipeline& pipeline = plan.pipeline->pipeline;
  return std::int64_t{3} * pipeline.positions() * pipeline.micro_batches <= most_traced_passes;
}

void trace_pipeline(const TrainingPlan& training, const StepRun& step, CollectiveCosts& costs,
                    TraceEvents& events) {
  PipelineTrace(training, step, costs, events).write();
}

}  // namespace lambcast
