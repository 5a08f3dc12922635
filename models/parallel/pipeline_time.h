// Time at which each slot of a pipeline runs: the earliest start by its order and its inputs.
//
//   start = max(end of the stage's previous slot, arrival of its input)
//   forward of position k needs forward of k - 1; backward (or input gradient) of k + 1
//   arrival = end of the sender's slot + transfer
// Positions are chunks in the order of a forward pass (Pipeline::position). One pass over the slots
// suffices, in any order that respects the dependencies; the result does not depend on the order.
//
// A transfer is either overlapped (interleaved with overlap_p2p_comm in Megatron-LM: the sender
// goes on) or exposed (plain 1f1b, DeepSpeed's blocking sends: the sender's next slot starts when
// the data has arrived). In both cases receivers wait if they are early. Left out: a sender that
// waits until its receiver is ready, and transfers that share a link.
//
// All schedules except gpipe repeat: with a turn of p micro batches, a stage runs the same slots in
// every turn. If every slot of some turns starts D after the same slot c turns earlier, all later
// slots do too, as long as the order repeats: a start depends only on slots of the last 3 turns. A
// long pipeline is therefore replayed with k c turns fewer, and k D is added.
#pragma once

#include <span>
#include <vector>

#include "models/parallel/pipeline_schedule.h"
#include "sim/base/units.h"

namespace lambcast::parallel {

// Times of one micro batch at one position.
struct ChunkTimes {
  Duration forward;
  Duration backward;  // both gradients in one slot
  Duration input_gradient;
  Duration weight_gradient;
  Duration send_forward;   // to the next position; unused at the last
  Duration send_backward;  // to the previous position; unused at the first
};

enum class Transfers { overlapped, exposed };

struct SlotTime {
  Duration start;
  Duration end;  // end of the computation, before an exposed transfer
};

struct StageTime {
  Duration first_start;
  Duration last_end;  // including an exposed transfer after the last slot
  Duration busy;      // computing
  Duration sending;   // blocked by its own exposed transfers
  // For each chunk, the slot after which its gradients are complete. Their reduction may begin
  // then, while other chunks and stages still compute.
  std::vector<SlotTime> last_gradient;

  // Returns the idle time between the first slot and the last.
  Duration idle() const { return last_end - first_start - busy - sending; }
};

struct PipelineTime {
  Duration makespan;  // time from the first slot of all stages to the last
  std::vector<StageTime> stages;
  std::vector<std::vector<SlotTime>>
      slots;  // slots in the order of pipeline_slots(); only on request

  // Returns the longest time of a stage from its first slot to its last: the period of steps whose
  // optimizer does not wait for all stages, as in zero-bubble schedules.
  Duration longest_stage() const;
};

enum class Detail { stages, slots };

// `times` are indexed by position. refusal() of the pipeline must be empty (pipeline_schedule.h).
PipelineTime pipeline_time(const Pipeline& pipeline, std::span<const ChunkTimes> times,
                           Transfers transfers, Detail detail = Detail::stages);

}  // namespace lambcast::parallel
