#include "models/parallel/pipeline_time.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "sim/base/check.h"

namespace lambcast::parallel {
namespace {

using Picoseconds = std::int64_t;
constexpr Picoseconds never = -1;

// Adds two times. Throws Error if the sum exceeds the range of Duration.
Picoseconds sum(Picoseconds a, Picoseconds b) {
  Picoseconds sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) [[unlikely]]
    return (Duration::picoseconds(a) + Duration::picoseconds(b)).ps();
  return sum;
}

// Progress of a stage in its order of slots.
struct Cursor {
  std::vector<PipelineSlot> slots;
  std::size_t next = 0;
  Picoseconds free_at = 0;
  Picoseconds first_start = never;
  Picoseconds busy = 0;
  Picoseconds sending = 0;
  std::vector<SlotTime> last_gradient;
  std::vector<SlotTime> times;
};

class Replay {
 public:
  Replay(const Pipeline& pipeline, std::span<const ChunkTimes> times, Transfers transfers,
         Detail detail)
      : pipeline_(pipeline),
        times_(times),
        exposed_(transfers == Transfers::exposed),
        detail_(detail),
        forward_(arrivals(), never),
        backward_(arrivals(), never) {
    for (int stage = 0; stage < pipeline.stages; ++stage) {
      Cursor cursor;
      cursor.slots = stage_slots(pipeline, stage);
      cursor.last_gradient.resize(static_cast<std::size_t>(pipeline.chunks));
      cursors_.push_back(std::move(cursor));
    }
    // The first position has its input from the start, the last has the gradient of its output.
    std::fill_n(forward_.begin(), pipeline.micro_batches, 0);
    std::fill_n(backward_.end() - pipeline.micro_batches, pipeline.micro_batches, 0);
  }

  void run() {
    for (int stage = pipeline_.stages; stage-- > 0;) runnable_.push_back(stage);
    while (!runnable_.empty()) {
      const int stage = runnable_.back();
      runnable_.pop_back();
      advance(stage);
    }
    for (const Cursor& cursor : cursors_)
      LAMBCAST_CHECK(cursor.next == cursor.slots.size(), "stages wait for one another");
  }

  PipelineTime result() {
    PipelineTime result;
    for (Cursor& cursor : cursors_) {
      const auto time = [](Picoseconds ps) { return Duration::picoseconds(ps); };
      result.stages.push_back({time(cursor.first_start), time(cursor.free_at), time(cursor.busy),
                               time(cursor.sending), std::move(cursor.last_gradient)});
      result.makespan = std::max(result.makespan, time(cursor.free_at));
      if (detail_ == Detail::slots) result.slots.push_back(std::move(cursor.times));
    }
    return result;
  }

 private:
  std::size_t arrivals() const {
    return static_cast<std::size_t>(pipeline_.positions()) *
           static_cast<std::size_t>(pipeline_.micro_batches);
  }

  std::size_t index(int position, int micro_batch) const {
    return static_cast<std::size_t>(position) * static_cast<std::size_t>(pipeline_.micro_batches) +
           static_cast<std::size_t>(micro_batch);
  }

  // Returns the arrival time of the slot's input, or `never` if it is not known yet.
  Picoseconds arrival(const PipelineSlot& slot, int position) const {
    switch (slot.kind) {
      case SlotKind::forward:
        return forward_[index(position, slot.micro_batch)];
      case SlotKind::backward:
      case SlotKind::input_gradient:
        return backward_[index(position, slot.micro_batch)];
      case SlotKind::weight_gradient:
        return 0;  // the stage's own input gradient, which precedes it
    }
    return never;
  }

  static Duration time_of(const PipelineSlot& slot, const ChunkTimes& times) {
    switch (slot.kind) {
      case SlotKind::forward:
        return times.forward;
      case SlotKind::backward:
        return times.backward;
      case SlotKind::input_gradient:
        return times.input_gradient;
      case SlotKind::weight_gradient:
        return times.weight_gradient;
    }
    return {};
  }

  void advance(int stage) {
    Cursor& cursor = cursors_[static_cast<std::size_t>(stage)];
    for (; cursor.next < cursor.slots.size(); ++cursor.next) {
      const PipelineSlot& slot = cursor.slots[cursor.next];
      const int position = pipeline_.position(stage, slot.chunk);
      const ChunkTimes& times = times_[static_cast<std::size_t>(position)];
      const Picoseconds input = arrival(slot, position);
      if (input == never) return;
      const Picoseconds start = std::max(cursor.free_at, input);
      const Picoseconds duration = time_of(slot, times).ps();
      const Picoseconds end = sum(start, duration);
      if (cursor.first_start == never) cursor.first_start = start;
      cursor.busy += duration;
      cursor.free_at = end;
      const SlotTime span{Duration::picoseconds(start), Duration::picoseconds(end)};
      if (slot.kind == SlotKind::backward || slot.kind == SlotKind::weight_gradient)
        cursor.last_gradient[slot.chunk] = span;
      if (detail_ == Detail::slots) cursor.times.push_back(span);
      send(stage, position, slot, times, cursor);
    }
  }

  void send(int stage, int position, const PipelineSlot& slot, const ChunkTimes& times,
            Cursor& cursor) {
    if (slot.kind == SlotKind::weight_gradient) return;
    const bool forward = slot.kind == SlotKind::forward;
    const int target = forward ? position + 1 : position - 1;
    if (target < 0 || target == pipeline_.positions()) return;
    const int receiver = pipeline_.stage_at(target);
    const Picoseconds transfer =
        receiver == stage ? 0 : (forward ? times.send_forward : times.send_backward).ps();
    std::vector<Picoseconds>& arrivals = forward ? forward_ : backward_;
    arrivals[index(target, slot.micro_batch)] = sum(cursor.free_at, transfer);
    if (exposed_) {
      cursor.free_at = sum(cursor.free_at, transfer);
      cursor.sending += transfer;
    }
    wake(receiver, target, slot);
  }

  // Marks the receiver as runnable if it waits for exactly this input.
  void wake(int receiver, int target, const PipelineSlot& sent) {
    const Cursor& cursor = cursors_[static_cast<std::size_t>(receiver)];
    if (cursor.next == cursor.slots.size()) return;
    const PipelineSlot& awaited = cursor.slots[cursor.next];
    if (awaited.micro_batch == sent.micro_batch && awaited.kind == sent.kind &&
        pipeline_.position(receiver, awaited.chunk) == target)
      runnable_.push_back(receiver);
  }

  const Pipeline& pipeline_;
  std::span<const ChunkTimes> times_;
  bool exposed_;
  Detail detail_;
  std::vector<Picoseconds> forward_;  // arrivals by position and micro batch
  std::vector<Picoseconds> backward_;
  std::vector<Cursor> cursors_;
  std::vector<int> runnable_;
};

// Constants of the search for a repetition, in turns. A turn has as many micro batches as stages.
constexpr int reach = 4;  // turns that a start depends on, and one more
constexpr int most_period = 2, last_turns = 2;
constexpr int least_turns = 10;

// Time between a turn and the one `turns` turns earlier.
struct Repetition {
  int turns;
  Duration later;
};

// Finds the period after which slots and times of a pipeline repeat. The last turns are left out,
// since they may lack forward slots.
class Steady {
 public:
  Steady(const Pipeline& pipeline, const PipelineTime& time) : pipeline_(pipeline), time_(time) {}

  std::optional<Repetition> find() const {
    for (int turns = 1; turns <= most_period; ++turns)
      if (const auto later = later_by(turns)) return Repetition{turns, *later};
    return std::nullopt;
  }

 private:
  std::optional<Duration> later_by(int turns) const {
    std::optional<Duration> later;
    for (int stage = 0; stage < pipeline_.stages; ++stage) {
      const std::vector<PipelineSlot> slots = stage_slots(pipeline_, stage);
      const std::vector<SlotTime>& spans = time_.slots[static_cast<std::size_t>(stage)];
      const std::size_t turn = slots.size() / static_cast<std::size_t>(pipeline_.micro_batches) *
                               static_cast<std::size_t>(pipeline_.stages);
      const std::size_t end = slots.size() - last_turns * turn;
      const std::size_t back = turn * static_cast<std::size_t>(turns);
      for (std::size_t i = end - reach * turn; i < end; ++i) {
        const PipelineSlot &slot = slots[i], &before = slots[i - back];
        const Duration by = spans[i].start - spans[i - back].start;
        if (!later) later = by;
        if (by != *later || slot.kind != before.kind || slot.chunk != before.chunk ||
            slot.micro_batch != before.micro_batch + turns * pipeline_.stages)
          return std::nullopt;
      }
    }
    return later;
  }

  const Pipeline& pipeline_;
  const PipelineTime& time_;
};

// Lengthens a pipeline by `times` repetitions.
void lengthen(PipelineTime& time, const Repetition& by, std::int64_t times, int micro_batches,
              int micro_batches_before) {
  const Duration later = by.later * times;
  const auto grown = [&](Duration of) {
    const std::int64_t each = of.ps() / micro_batches_before;
    return Duration::picoseconds(each) * micro_batches;
  };
  for (StageTime& stage : time.stages) {
    stage.last_end += later;
    stage.busy = grown(stage.busy);
    stage.sending = grown(stage.sending);
    for (SlotTime& last : stage.last_gradient) last = {last.start + later, last.end + later};
  }
  time.makespan += later;
  time.slots.clear();
}

// Returns the time of a long pipeline from a shorter one that repeats, or nothing.
std::optional<PipelineTime> by_repetition(const Pipeline& pipeline,
                                          std::span<const ChunkTimes> times, Transfers transfers) {
  if (pipeline.schedule == PipelineSchedule::gpipe) return std::nullopt;
  for (std::int64_t turns = least_turns; 2 * turns * pipeline.stages < pipeline.micro_batches;
       turns *= 2) {
    Pipeline shorter = pipeline;
    const auto least = static_cast<int>(turns * pipeline.stages);
    const int period = most_period * pipeline.stages;
    shorter.micro_batches = least + (pipeline.micro_batches - least) % period;
    Replay replay(shorter, times, transfers, Detail::slots);
    replay.run();
    PipelineTime time = replay.result();
    const auto repetition = Steady(shorter, time).find();
    if (!repetition) continue;
    const int left_out = pipeline.micro_batches - shorter.micro_batches;
    lengthen(time, *repetition, left_out / (repetition->turns * pipeline.stages),
             pipeline.micro_batches, shorter.micro_batches);
    return time;
  }
  return std::nullopt;
}

}  // namespace

Duration PipelineTime::longest_stage() const {
  Duration longest;
  for (const StageTime& stage : stages)
    longest = std::max(longest, stage.last_end - stage.first_start);
  return longest;
}

PipelineTime pipeline_time(const Pipeline& pipeline, std::span<const ChunkTimes> times,
                           Transfers transfers, Detail detail) {
  LAMBCAST_CHECK(times.size() == static_cast<std::size_t>(pipeline.positions()),
                 "times of {} positions for {}", times.size(), pipeline.positions());
  if (detail == Detail::stages)
    if (auto time = by_repetition(pipeline, times, transfers)) return *std::move(time);
  Replay replay(pipeline, times, transfers, detail);
  replay.run();
  return replay.result();
}

}  // namespace lambcast::parallel
