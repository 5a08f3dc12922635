#include "models/parallel/pipeline_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/check.h"

namespace lambcast::parallel {
namespace {

using Slots = std::vector<PipelineSlot>;

PipelineSlot slot(SlotKind kind, int chunk, int micro_batch) {
  return {kind, static_cast<std::uint8_t>(chunk), micro_batch};
}

Slots gpipe(const Pipeline& pipeline) {
  Slots slots;
  for (int i = 0; i < pipeline.micro_batches; ++i) slots.push_back(slot(SlotKind::forward, 0, i));
  for (int i = pipeline.micro_batches; i-- > 0;) slots.push_back(slot(SlotKind::backward, 0, i));
  return slots;
}

// Iterates over the passes of a stage: p micro batches of the first chunk, p of the next, and so
// on. The last turn may have fewer micro batches.
class Turns {
 public:
  Turns(const Pipeline& pipeline, SlotKind kind)
      : pipeline_(pipeline),
        kind_(kind),
        group_(std::min(pipeline.stages, pipeline.micro_batches)) {}

  PipelineSlot next() {
    const int chunk = kind_ == SlotKind::forward ? chunk_ : pipeline_.chunks - 1 - chunk_;
    const PipelineSlot pass = slot(kind_, chunk, first_ + within_);
    if (++within_ < group_) return pass;
    within_ = 0;
    if (++chunk_ < pipeline_.chunks) return pass;
    chunk_ = 0;
    first_ += group_;
    group_ = std::min(pipeline_.stages, pipeline_.micro_batches - first_);
    return pass;
  }

 private:
  const Pipeline& pipeline_;
  SlotKind kind_;
  int group_, first_ = 0, chunk_ = 0, within_ = 0;
};

// Returns the interleaved order; 1f1b is the case of one chunk.
Slots interleaved(const Pipeline& pipeline, int ahead) {
  const int passes = pipeline.micro_batches * pipeline.chunks;
  const int warm_up = std::min(passes, ahead);
  Slots slots;
  slots.reserve(2 * static_cast<std::size_t>(passes));
  Turns forward(pipeline, SlotKind::forward), backward(pipeline, SlotKind::backward);
  for (int pass = 0; pass < passes + warm_up; ++pass) {
    if (pass < passes) slots.push_back(forward.next());
    if (pass >= warm_up) slots.push_back(backward.next());
  }
  return slots;
}

// Returns `warm_up` forward slots, then repeats B, the W of the micro batch `lag` earlier, and one
// forward slot.
Slots zero_bubble(int micro_batches, int warm_up, int lag) {
  Slots slots;
  slots.reserve(3 * static_cast<std::size_t>(micro_batches));
  const auto add = [&](SlotKind kind, int micro_batch) {
    if (micro_batch >= 0 && micro_batch < micro_batches)
      slots.push_back(slot(kind, 0, micro_batch));
  };
  for (int i = 0; i < std::min(warm_up, micro_batches); ++i) add(SlotKind::forward, i);
  for (int i = 0; i < micro_batches + lag; ++i) {
    add(SlotKind::input_gradient, i);
    add(SlotKind::weight_gradient, i - lag);
    add(SlotKind::forward, i + warm_up);
  }
  return slots;
}

// Builds the slots of a stage. It counts micro batches per kind and chunk, and leaves out those
// beyond the last.
class VeeStage {
 public:
  explicit VeeStage(int micro_batches) : micro_batches_(micro_batches) {}

  void add(SlotKind kind, int chunk) {
    const int micro_batch = next(kind, chunk)++;
    if (micro_batch < micro_batches_) slots_.push_back(slot(kind, chunk, micro_batch));
  }
  void forward(int chunk) { add(SlotKind::forward, chunk); }
  void backward(int chunk) {
    add(SlotKind::input_gradient, chunk);
    add(SlotKind::weight_gradient, chunk);
  }
  void remaining_weights(int chunk) {
    while (next(SlotKind::weight_gradient, chunk) < next(SlotKind::input_gradient, chunk))
      add(SlotKind::weight_gradient, chunk);
  }
  int& next(SlotKind kind, int chunk) {
    return next_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(chunk)];
  }
  Slots slots() && { return std::move(slots_); }

 private:
  int micro_batches_;
  std::array<std::array<int, 2>, 4> next_{};  // next micro batch, by kind and chunk
  Slots slots_;
};

Slots vee(const Pipeline& pipeline, int stage) {
  // The order is the one of a longer pipeline; micro batches that this pipeline does not have are
  // left out.
  const int full = std::max(pipeline.micro_batches, 2 * pipeline.stages - 1);
  VeeStage out(pipeline.micro_batches);
  for (int i = 0; i < 2 * (pipeline.stages - stage) - 1; ++i) out.forward(0);
  for (int i = 0; i < stage; ++i) {
    out.forward(1);
    out.forward(0);
  }
  for (int i = stage; i < pipeline.stages; ++i) {
    out.forward(1);
    out.backward(1);
  }
  const int& first = out.next(SlotKind::forward, 0);
  const int& second = out.next(SlotKind::forward, 1);
  while (first < full || second < first) {
    if (first < full) out.forward(0);
    out.backward(0);
    out.forward(1);
    out.backward(1);
  }
  // Input gradients come first, since other stages wait for them.
  for (int i = 0; i < stage; ++i) {
    out.add(SlotKind::input_gradient, 0);
    out.add(SlotKind::input_gradient, 1);
  }
  for (int i = stage; i < pipeline.stages; ++i) out.backward(0);
  out.remaining_weights(1);
  out.remaining_weights(0);
  return std::move(out).slots();
}

}  // namespace

const std::vector<std::string>& pipeline_schedule_names() {
  static const std::vector<std::string> names{"gpipe", "1f1b", "interleaved",
                                              "zb1p",  "zb2p", "zbv"};
  return names;
}

std::string_view name_of(PipelineSchedule schedule) {
  return pipeline_schedule_names()[static_cast<std::size_t>(schedule)];
}

PipelineSchedule parse_pipeline_schedule(std::string_view text, const Where& where) {
  const std::vector<std::string>& names = pipeline_schedule_names();
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) fail_unknown(where, "pipeline schedule", text, names);
  return static_cast<PipelineSchedule>(found - names.begin());
}

bool splits_backward(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::zb1p || schedule == PipelineSchedule::zb2p ||
         schedule == PipelineSchedule::zbv;
}

int Pipeline::position(int stage, int chunk) const {
  if (schedule == PipelineSchedule::zbv && chunk == 1) return 2 * stages - 1 - stage;
  return chunk * stages + stage;
}

int Pipeline::chunk_at(int position) const { return position / stages; }

int Pipeline::stage_at(int position) const {
  if (schedule == PipelineSchedule::zbv && position >= stages) return 2 * stages - 1 - position;
  return position % stages;
}

std::string refusal(const Pipeline& pipeline) {
  const auto [schedule, stages, chunks, micro_batches] = pipeline;
  if (stages < 1 || chunks < 1 || micro_batches < 1)
    return fmt::format("{} stages, {} chunks and {} micro batches make no pipeline", stages, chunks,
                       micro_batches);
  if (chunks > max_chunks) return fmt::format("more than {} chunks per stage", max_chunks);
  if (schedule == PipelineSchedule::zbv && chunks != 2)
    return fmt::format("zbv has 2 chunks per stage, not {}", chunks);
  if (schedule != PipelineSchedule::interleaved && schedule != PipelineSchedule::zbv && chunks != 1)
    return fmt::format("{} has one chunk per stage, not {}", name_of(schedule), chunks);
  if (schedule != PipelineSchedule::interleaved || stages == 1 || chunks == 1) return "";
  // Megatron-LM refuses a last group with fewer micro batches than stages, in which stages would
  // wait for one another.
  if (micro_batches % stages != 0)
    return fmt::format("interleaved needs micro batches ({}) divisible by pp {}", micro_batches,
                       stages);
  return "";
}

std::vector<PipelineSlot> stage_slots(const Pipeline& pipeline, int stage) {
  const std::string why_not = refusal(pipeline);
  LAMBCAST_CHECK(why_not.empty(), "{}", why_not);
  LAMBCAST_CHECK(stage >= 0 && stage < pipeline.stages, "stage {} of {}", stage, pipeline.stages);
  const int after = pipeline.stages - 1 - stage;
  switch (pipeline.schedule) {
    case PipelineSchedule::gpipe:
      return gpipe(pipeline);
    case PipelineSchedule::one_f_one_b:
      return interleaved(pipeline, after);
    case PipelineSchedule::interleaved:
      return interleaved(pipeline, pipeline.chunks == 1
                                       ? after
                                       : 2 * after + (pipeline.chunks - 1) * pipeline.stages);
    case PipelineSchedule::zb1p:
      return zero_bubble(pipeline.micro_batches, after + 1, stage);
    case PipelineSchedule::zb2p:
      return zero_bubble(pipeline.micro_batches, 2 * after + 1, 2 * stage);
    case PipelineSchedule::zbv:
      return vee(pipeline, stage);
  }
  return {};
}

Pipeline shortest_alike(const Pipeline& pipeline) {
  const bool repeats = pipeline.schedule == PipelineSchedule::one_f_one_b ||
                       pipeline.schedule == PipelineSchedule::interleaved;
  Pipeline shortest = pipeline;
  if (repeats) shortest.micro_batches = std::min(pipeline.micro_batches, 4 * pipeline.stages);
  return shortest;
}

std::vector<std::vector<PipelineSlot>> pipeline_slots(const Pipeline& pipeline) {
  std::vector<std::vector<PipelineSlot>> slots;
  for (int stage = 0; stage < pipeline.stages; ++stage)
    slots.push_back(stage_slots(pipeline, stage));
  return slots;
}

double peak_held(std::span<const PipelineSlot> slots, std::span<const double> held,
                 std::span<const double> awaiting_weight) {
  double now = 0;
  double peak = 0;
  for (const PipelineSlot& slot : slots) {
    const std::size_t chunk = slot.chunk;
    if (slot.kind == SlotKind::forward) now += held[chunk];
    peak = std::max(peak, now);
    if (slot.kind == SlotKind::backward) now -= held[chunk];
    if (slot.kind == SlotKind::input_gradient) now -= held[chunk] - awaiting_weight[chunk];
    if (slot.kind == SlotKind::weight_gradient) now -= awaiting_weight[chunk];
  }
  return peak;
}

int in_flight(const Pipeline& pipeline, int stage) {
  const std::vector<double> one(static_cast<std::size_t>(pipeline.chunks), 1.0);
  return static_cast<int>(peak_held(stage_slots(pipeline, stage), one, one));
}

double unpaired_share(const Pipeline& pipeline) {
  const std::vector<PipelineSlot> slots = stage_slots(pipeline, 0);
  const auto first = std::ranges::find_if(
      slots, [](const PipelineSlot& slot) { return slot.kind != SlotKind::forward; });
  const double passes = static_cast<double>(pipeline.micro_batches) * pipeline.chunks;
  return static_cast<double>(first - slots.begin()) / passes;
}

}  // namespace lambcast::parallel
