// Order of the slots of each pipeline stage: forward, backward and weight-gradient slots as pure
// data, without durations. pipeline_time.h replays them.
//
//   gpipe        all forward, then all backward, the last micro batch first (Huang et al. 2019)
//   1f1b         p - r - 1 forward first, then one forward, one backward (PipeDream-flush,
//                Narayanan et al. 2021, figure 4; DeepSpeed runtime/pipe/schedule.py)
//   interleaved  1f1b over v chunks of layers per stage; min(m v, 2 (p - r - 1) + (v - 1) G)
//                forward first, G = p micro batches of a chunk at a time (Megatron-LM
//                core/pipeline_parallel/schedules.py, get_pp_rank_microbatches)
//   zb1p, zb2p   the backward pass in two slots: B the gradient of the input, which the previous
//                stage waits for, and W the gradient of the weights, which no stage waits for (Qi
//                et al. 2024, ZB-H1 and ZB-H2, figures 2 and 3). zb1p on stage r: p - r forward
//                first, W r micro batches after B. zb2p: 2 (p - r) - 1 forward first, W 2 r after B
//   zbv          two chunks per stage, the second in reverse order of stages (Qi et al. 2024,
//                section 6; PyTorch distributed/pipelining/schedules.py, ScheduleZBVZeroBubble)
//
// With forward, backward, B and W of a micro batch on a stage taking tf, tb = tB + tW, the idle
// time of a stage is
//   gpipe, 1f1b  (p - 1)(tf + tb)        interleaved  (p - 1)(tf + tb) / v
//   zb1p  (p - 1)(tf + tB - tW)          zb2p  (p - 1)(tf + tB - 2 tW)      zbv  0 if all equal
// zb1p, zb2p and zbv count idle time from a stage's first slot to its last: their optimizer steps
// are not synchronised (section 4 there). zb2p and zbv need m >= 2 p to reach it.
//
// r is the stage from 0 to p - 1, m the micro batches of a step, v the chunks per stage.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

namespace lambcast::parallel {

enum class PipelineSchedule { gpipe, one_f_one_b, interleaved, zb1p, zb2p, zbv };

std::string_view name_of(PipelineSchedule schedule);  // "1f1b"
const std::vector<std::string>& pipeline_schedule_names();
PipelineSchedule parse_pipeline_schedule(std::string_view text, const Where& where);

// Returns whether the schedule computes gradients of inputs and of weights in separate slots.
bool splits_backward(PipelineSchedule schedule);

struct Pipeline {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int stages = 1;
  int chunks = 1;  // chunks per stage: 1; any number for interleaved; 2 for zbv
  int micro_batches = 1;

  // Convert between a stage's chunk and the position of this chunk in a forward pass.
  int position(int stage, int chunk) const;
  int stage_at(int position) const;
  int chunk_at(int position) const;
  int positions() const { return stages * chunks; }
};

// Returns why the schedule cannot run, as a sentence without its place; empty if it can.
std::string refusal(const Pipeline& pipeline);

enum class SlotKind : std::uint8_t { forward, backward, input_gradient, weight_gradient };

struct PipelineSlot {
  SlotKind kind = SlotKind::forward;
  std::uint8_t chunk = 0;
  std::int32_t micro_batch = 0;
  friend bool operator==(const PipelineSlot&, const PipelineSlot&) = default;
};
inline constexpr int max_chunks = 256;

// Return the slots in the order in which the stage runs them; the second function for all stages.
// refusal() of the pipeline must be empty.
std::vector<PipelineSlot> stage_slots(const Pipeline& pipeline, int stage);
std::vector<std::vector<PipelineSlot>> pipeline_slots(const Pipeline& pipeline);

// Returns the pipeline with fewer micro batches but the same peak of kept micro batches: 1F1B warms
// up within two turns of p micro batches, and later turns are equal.
Pipeline shortest_alike(const Pipeline& pipeline);

// Returns the peak that a stage keeps for later backward passes. A micro batch weighs held[chunk]
// from its forward slot to the end of its backward or input-gradient slot, and then
// awaiting_weight[chunk] to the end of its weight-gradient slot (the inputs and output gradients of
// its matrices, 32 s b h of 34 s b h + 5 a s^2 b bytes in a GPT layer; Qi et al. 2024, table 1).
double peak_held(std::span<const PipelineSlot> slots, std::span<const double> held,
                 std::span<const double> awaiting_weight);

// Returns that peak as a number of micro batches of chunks, each with weight 1.
int in_flight(const Pipeline& pipeline, int stage);

// Returns the share of passes that do not overlap a pass of the other direction.
//
// The forward pass of one micro batch may overlap the backward pass of another, each hiding the
// other's exchanges (Megatron-LM --overlap-moe-expert-parallel-comm). The warm-up and the cool-down
// have no such pairs. For the first stage, which has the most unpaired passes, these are the passes
// before its first backward one, and an equal number after its last forward one. Their share of all
// its passes is (2 (p - 1) + (v - 1) p + 1) / (m v) if interleaved, p / m in 1F1B, 1 / m without a
// pipeline. Source: Megatron-LM core/pipeline_parallel/{schedules,combined_1f1b}.py.
double unpaired_share(const Pipeline& pipeline);

}  // namespace lambcast::parallel
