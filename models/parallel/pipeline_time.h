// When each slot of a pipeline runs: the earliest start by its order and what it waits for.
//
//   start = max(end of the stage's slot before, arrival of its input)
//   forward of position k needs forward of k - 1; backward (or input gradient) needs that of k + 1
//   arrival = end of the sender's slot + transfer
// Positions are chunks in the order of a forward pass (Pipeline::position). One pass over the
// slots, in any order that the waiting allows: the result does not depend on it.
//
// A transfer is either overlapped (interleaved with overlap_p2p_comm in Megatron-LM: the sender
// goes on) or exposed (plain 1f1b, DeepSpeed's blocking sends: the sender's next slot starts when
// the data has arrived). Receivers wait in both cases, if they are early. Left out: a sender that
// waits for its receiver to be ready, and transfers that share a link.
//
// All schedules except gpipe repeat: with a turn of p micro batches, a stage runs the slots of one
// turn after those of the one before. If every slot of some turns starts D after the slot c turns
// before, so do all that follow, as far as the order repeats: a start depends on slots of the last
// 3 turns alone. A long pipeline is therefore replayed with k c turns fewer, and k D is added.
#pragma once

#include <span>
#include <vector>

#include "models/parallel/pipeline_schedule.h"
#include "sim/base/units.h"

namespace lambcast::parallel {

// One micro batch at one position.
struct ChunkTimes {
  Duration forward;
  Duration backward;  // both gradients in one slot
  Duration input_gradient;
  Duration weight_gradient;
  Duration send_forward;   // to the next position; unused at the last
  Duration send_backward;  // to the position before; unused at the first
};

enum class Transfers { overlapped, exposed };

struct SlotTime {
  Duration start;
  Duration end;  // of its computation, without an exposed transfer
};

struct StageTime {
  Duration first_start;
  Duration last_end;  // with an exposed transfer after the last slot
  Duration busy;      // computing
  Duration sending;   // held up by its own exposed transfers
  // By chunk: the slot after which the chunk's gradients are complete, where their reduction may
  // begin while other chunks and stages still compute.
  std::vector<SlotTime> last_gradient;

  // Between its first slot and its last.
  Duration idle() const { return last_end - first_start - busy - sending; }
};

struct PipelineTime {
  Duration makespan;  // from the first slot of all to the last
  std::vector<StageTime> stages;
  std::vector<std::vector<SlotTime>> slots;  // as in pipeline_slots(); only on request

  // The longest stage from its first slot to its last: the period of steps whose optimizer does not
  // wait for all stages, as zero-bubble schedules have it.
  Duration longest_stage() const;
};

enum class Detail { stages, slots };

// `times` by position. The pipeline must not be refused (pipeline_schedule.h).
PipelineTime pipeline_time(const Pipeline& pipeline, std::span<const ChunkTimes> times,
                           Transfers transfers, Detail detail = Detail::stages);

}  // namespace lambcast::parallel
