#include "models/training/price/unpaired_passes.h"

#include <algorithm>
#include <vector>

namespace lambcast {

double unpaired_share(const parallel::Pipeline& pipeline) {
  const std::vector<parallel::PipelineSlot> slots = parallel::stage_slots(pipeline, 0);
  const auto first = std::find_if(slots.begin(), slots.end(), [](const auto& slot) {
    return slot.kind != parallel::SlotKind::forward;
  });
  const double passes = static_cast<double>(pipeline.micro_batches) * pipeline.chunks;
  return static_cast<double>(first - slots.begin()) / passes;
}

}  // namespace lambcast
