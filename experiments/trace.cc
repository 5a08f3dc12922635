#include "experiments/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/training/pass_price.h"
#include "models/training/stages.h"
#include "models/training/step.h"

namespace lambcast {
namespace {

using Json = nlohmann::ordered_json;

std::string group_text(const ProcessGroup& group) {
  std::string text = fmt::format("{} ranks, {} on each of {} nodes", group.ranks,
                                 std::min(group.ranks, group.per_node), group.nodes());
  if (group.stride > 1) text += fmt::format(", every {}th slot", group.stride);
  if (group.siblings > 1) text += fmt::format(", {} such groups at once", group.siblings);
  return text;
}

// Whole 1,024ths of a microsecond, which viewers add and subtract without rounding: what overlaps
// the next slice by the last bit is drawn as a call within this one.
constexpr double parts_of_us = 1024;
double on_grid(Duration time) { return std::round(time.us() * parts_of_us) / parts_of_us; }

// What an operation does, as args; how long the pieces of a step take is priced again from what
// `costs` remembers.
class WorkArgs {
 public:
  WorkArgs(const TrainingPlan& training, CollectiveCosts& costs)
      : training_(training), costs_(costs) {}

  Json of(const PlanOp& op) const {
    return std::visit([&](const auto& work) { return args(work); }, op.work);
  }

 private:
  Json args(const PassWork& work) const {
    if (work.from == 0 && work.to == 1) return {{"layers", fmt::format("all {}", layers())}};
    const auto first = std::llround(work.from * static_cast<double>(layers()));
    const auto last = std::llround(work.to * static_cast<double>(layers()));
    if (last - first != 1) return {{"share", work.to - work.from}};
    return {{"layer", work.backward ? layers() - last : first}};
  }
  Json args(const StageWork& work) const { return {{"stretch", work.segment}}; }
  Json args(const MemoryWork& work) const { return {{"bytes", work.bytes}}; }
  Json args(const KernelWork& work) const {
    return {{"elements", work.elements},
            {"tensors", work.tensors},
            {"bytes", work.passes.bytes_per_element * work.elements}};
  }
  Json args(const ProductWork& work) const { return {{"flops", work.flops}}; }
  Json args(const HostCopy& work) const {
    return {{"bytes_down", work.down_bytes},
            {"bytes_up", work.up_bytes},
            {"memory", work.pinned ? "pinned" : "pageable"}};
  }
  Json args(const Call& call) const {
    const CollectiveCost& cost =
        costs_.cost({training_.cluster, call.group, training_.network, training_.expand},
                    call.backend, call.op, call.bytes, call.algorithm);
    return {{"op", std::string(lambcast::name_of(call.op))},
            {"bytes", call.bytes.value()},
            {"group", group_text(call.group)},
            {"library", std::string(traits_of(call.backend).in_words)},
            {"algorithm", cost.algorithm},
            {"protocol", cost.protocol},
            {"calibrated", cost.interval.calibrated}};
  }
  Json args(const Wait&) const { return Json::object(); }
  Json args(const Slowdown& work) const { return {{"beside", args(work.beside)}}; }

  std::int64_t layers() const { return std::max<std::int64_t>(1, training_.model->layers); }

  const TrainingPlan& training_;
  CollectiveCosts& costs_;
};

// A slice as it is drawn; times from the start of the step.
struct Slice {
  std::string name;
  std::string category;
  std::size_t thread = 0;
  Duration begin, end;
  Json args;
};

class StepTrace {
 public:
  StepTrace(const TrainingPlan& training, const Stage& stage, CollectiveCosts& costs, int process,
            Json& events)
      : training_(training),
        costs_(costs),
        step_(run_step(training, stage, costs)),
        process_(process),
        events_(events) {
    name_process(stage);
  }

  void write() {
    ends_.resize(step_.plan.ops.size(), -1);
    const auto slots = traced_slots();
    for (std::size_t i = 0; i < step_.plan.ops.size(); ++i) write_op(i, slots);
    if (slots) write_slots(*slots);
    write_micro_batches();
  }

 private:
  using Slots = std::vector<std::vector<parallel::SlotTime>>;

  // --- lanes ---

  void metadata(const char* what, std::size_t thread, Json args) {
    events_.push_back({{"ph", "M"},
                       {"pid", process_},
                       {"tid", thread},
                       {"name", what},
                       {"args", std::move(args)}});
  }

  void name_process(const Stage& stage) {
    metadata("process_name", 0,
             {{"name", fmt::format("{} step ({} of the run)", lambcast::name_of(stage.kind),
                                   stage.steps)}});
    metadata("process_sort_index", 0, {{"sort_index", process_}});
    const std::size_t classes = static_cast<std::size_t>(step_.plan.rank_classes);
    for (std::size_t c = 0; c < classes; ++c) {
      for (const Stream stream : {Stream::compute, Stream::communication}) {
        const std::string of = classes == 1 ? "" : fmt::format("stage {}: ", c);
        name_thread(thread_of(stream, c), of + std::string(lambcast::name_of(stream)));
      }
    }
  }

  void name_thread(std::size_t thread, const std::string& name) {
    metadata("thread_name", thread, {{"name", name}});
    metadata("thread_sort_index", thread, {{"sort_index", thread}});
  }

  // Thread 0 is that of the micro batches.
  static std::size_t thread_of(Stream stream, std::size_t rank_class) {
    return 1 + 2 * rank_class + (stream == Stream::communication ? 1 : 0);
  }

  // --- slices and arrows ---

  // Its number, for arrows from it.
  int slice(Slice slice) {
    events_.push_back({{"ph", "X"},
                       {"pid", process_},
                       {"tid", slice.thread},
                       {"name", std::move(slice.name)},
                       {"cat", std::move(slice.category)},
                       {"ts", on_grid(slice.begin)},
                       {"dur", on_grid(slice.end) - on_grid(slice.begin)},
                       {"args", std::move(slice.args)}});
    slices_.push_back({slice.thread, slice.begin, slice.end});
    return static_cast<int>(slices_.size()) - 1;
  }

  // Arrows leave from within the slice that ends, as viewers bind them to the slice around them.
  void arrow(int from, int to) {
    const Drawn& source = slices_[static_cast<std::size_t>(from)];
    const Drawn& target = slices_[static_cast<std::size_t>(to)];
    const int id = arrows_++;
    const auto end = [&](const char* phase, const Drawn& at, double us) {
      Json event = {
          {"ph", phase},    {"pid", process_},     {"tid", at.thread},
          {"name", "then"}, {"cat", "dependency"}, {"id", fmt::format("{}.{}", process_, id)},
          {"ts", us}};
      if (*phase == 'f') event["bp"] = "e";
      events_.push_back(std::move(event));
    };
    const double length = on_grid(source.end) - on_grid(source.begin);
    end("s", source,
        on_grid(source.begin) + std::floor(0.999 * length * parts_of_us) / parts_of_us);
    end("f", target, on_grid(target.begin));
  }

  // The slices that an operation waits for, through those that take no time.
  void add_sources(OpId op, std::vector<int>& sources) const {
    for (const OpId before : step_.plan.ops[op].after) {
      if (ends_[before] >= 0)
        sources.push_back(ends_[before]);
      else
        add_sources(before, sources);
    }
  }

  void write_op(std::size_t index, const std::optional<Slots>& slots) {
    const PlanOp& op = step_.plan.ops[index];
    const Span& span = step_.execution.timeline.spans[index];
    const bool has_slots = slots && std::holds_alternative<StageWork>(op.work);
    if (span.begin == span.end || has_slots) return;
    const Price& price = step_.prices[index];
    Json args = WorkArgs(training_, costs_).of(op);
    if (op.times > 1) args["times"] = op.times;
    const Interval ends = interval_of(price.time, price.wires, price.compute);
    args["low_us"] = ends.low.us();
    args["high_us"] = ends.high.us();
    if (price.wire_bytes_per_gpu.value() > 0)
      args["wire_bytes_per_gpu"] = price.wire_bytes_per_gpu.value();
    const std::size_t thread = thread_of(op.stream, static_cast<std::size_t>(op.rank_class));
    ends_[index] = slice({op.name, std::string(lambcast::name_of(op.part)), thread,
                          span.begin.since_start(), span.end.since_start(), std::move(args)});
    std::vector<int> sources;
    add_sources(static_cast<OpId>(index), sources);
    for (const int source : sources)
      if (slices_[static_cast<std::size_t>(source)].thread != thread) arrow(source, ends_[index]);
  }

  // --- micro batches ---

  // What runs from the first layer forward to the last backward, where it is written out.
  void write_micro_batches() {
    std::vector<std::pair<Duration, Duration>> found;
    for (std::size_t i = 0; i < step_.plan.ops.size(); ++i) {
      const auto* pass = std::get_if<PassWork>(&step_.plan.ops[i].work);
      if (!pass) continue;
      const Span& span = step_.execution.timeline.spans[i];
      if (!pass->backward && pass->from == 0)
        found.emplace_back(span.begin.since_start(), span.end.since_start());
      if (!found.empty()) found.back().second = span.end.since_start();
    }
    if (static_cast<std::int64_t>(found.size()) != training_.batch.gas) return;
    name_thread(0, "micro batches");
    for (std::size_t i = 0; i < found.size(); ++i)
      slice({fmt::format("micro batch {}", i),
             "micro batch",
             0,
             found[i].first,
             found[i].second,
             {{"samples", training_.batch.micro}}});
  }

  // --- the slots of a pipeline ---

  // Where they are few enough.
  std::optional<Slots> traced_slots() {
    if (!step_.plan.pipeline) return std::nullopt;
    const parallel::Pipeline& pipeline = step_.plan.pipeline->pipeline;
    if (std::int64_t{3} * pipeline.positions() * pipeline.micro_batches > most_traced_passes)
      return std::nullopt;
    price_ = price_pipeline(*step_.plan.pipeline, training_, costs_, End::expected, 0);
    return slot_times(*step_.plan.pipeline, price_);
  }

  // By how much a slot is later than in the pipeline alone: its stretch may have waited for
  // weights.
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

  void write_slots(const Slots& times) {
    const parallel::Pipeline& pipeline = step_.plan.pipeline->pipeline;
    const auto slots = parallel::pipeline_slots(pipeline);
    // Of each position and micro batch, for arrows to the next.
    const auto place = [&](int position, int micro_batch) {
      return static_cast<std::size_t>(position * pipeline.micro_batches + micro_batch);
    };
    std::vector<int> forward(place(pipeline.positions(), 0), -1), backward = forward;
    for (int stage = 0; stage < pipeline.stages; ++stage) {
      const auto at = static_cast<std::size_t>(stage);
      const Duration start =
          step_.plan.pipeline->synchronised ? Duration() : price_.time.stages[at].first_start;
      for (std::size_t i = 0; i < slots[at].size(); ++i) {
        const parallel::PipelineSlot& slot = slots[at][i];
        const int position = pipeline.position(stage, slot.chunk);
        const Duration begin = times[at][i].start - start;
        const Duration late = delay(stage, begin);
        const int drawn =
            slice(slot_slice(slot, stage, position, begin + late, times[at][i].end - start + late));
        if (slot.kind == parallel::SlotKind::forward)
          forward[place(position, slot.micro_batch)] = drawn;
        else if (slot.kind != parallel::SlotKind::weight_gradient)
          backward[place(position, slot.micro_batch)] = drawn;
      }
    }
    for (int position = 0; position + 1 < pipeline.positions(); ++position) {
      if (pipeline.stage_at(position) == pipeline.stage_at(position + 1)) continue;
      for (int m = 0; m < pipeline.micro_batches; ++m) {
        arrow(forward[place(position, m)], forward[place(position + 1, m)]);
        arrow(backward[place(position + 1, m)], backward[place(position, m)]);
      }
    }
  }

  Slice slot_slice(const parallel::PipelineSlot& slot, int stage, int position, Duration begin,
                   Duration end) const {
    using parallel::SlotKind;
    const bool is_forward = slot.kind == SlotKind::forward;
    const std::string_view kind = is_forward                              ? "forward"
                                  : slot.kind == SlotKind::backward       ? "backward"
                                  : slot.kind == SlotKind::input_gradient ? "input gradient"
                                                                          : "weight gradient";
    const parallel::ChunkContent& content =
        step_.plan.pipeline->chunks[static_cast<std::size_t>(position)];
    std::string layers =
        fmt::format("{} to {}", content.first_layer, content.first_layer + content.layers - 1);
    if (content.layers == 0) layers = "none";
    if (content.embedding) layers = "embedding, " + layers;
    if (content.head) layers += ", head";
    const ChunkPrice& chunk = price_.chunks[static_cast<std::size_t>(position)];
    PassPrice price = is_forward ? chunk.forward : chunk.input_gradient;
    if (slot.kind == SlotKind::weight_gradient) price = chunk.weight_gradient;
    if (slot.kind == SlotKind::backward) {
      price.compute += chunk.weight_gradient.compute;
      price.exposed += chunk.weight_gradient.exposed;
      price.communication += chunk.weight_gradient.communication;
    }
    return {fmt::format("{} {}", kind, slot.micro_batch),
            is_forward ? "forward" : "backward",
            thread_of(Stream::compute, static_cast<std::size_t>(stage)),
            begin,
            end,
            {{"micro_batch", slot.micro_batch},
             {"chunk", slot.chunk},
             {"layers", layers},
             {"compute_us", price.compute.us()},
             {"communication_us", price.communication.us()},
             {"exposed_us", price.exposed.us()}}};
  }

  struct Drawn {
    std::size_t thread;
    Duration begin, end;
  };

  const TrainingPlan& training_;
  CollectiveCosts& costs_;
  StepRun step_;
  PipelinePrice price_;  // where slots are drawn
  int process_;
  Json& events_;
  std::vector<Drawn> slices_;
  std::vector<int>
      ends_;  // the slice of each operation; -1: it takes no time, or is drawn by slots
  int arrows_ = 0;
};

}  // namespace

std::string chrome_trace(const TrainingPlan& of) {
  TrainingPlan training = of;
  training.per_block =
      of.batch.gas * std::max<std::int64_t>(1, of.model->layers) <= most_traced_passes;
  Json events = Json::array();
  CollectiveCosts costs;
  int process = 0;
  for (const Stage& stage : stages_of(training)) {
    if (stage.steps == 0) continue;
    StepTrace(training, stage, costs, process++, events).write();
  }
  const Json trace = {{"displayTimeUnit", "ms"},
                      {"traceEvents", std::move(events)},
                      {"otherData",
                       {{"model", training.model->name},
                        {"cluster", training.cluster->name},
                        {"gpus", training.gpus},
                        {"global_batch", training.batch.train}}}};
  return trace.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lambcast
