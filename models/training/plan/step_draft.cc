#include "models/training/plan/step_draft.h"

#include "models/training/plan/compressed_allreduce.h"

namespace lambcast {

OpId StepOperations::add(int stage, StepPart part, Stream stream, std::vector<OpId> after,
                         std::int64_t times, Among among) {
  Call* call = std::get_if<Call>(&part.work);
  if (call != nullptr && among == Among::stage)
    call->place = places_[static_cast<std::size_t>(stage)];
  ops_.push_back({std::move(part.name), part.part, stream, std::move(part.work), times,
                  std::move(after), stage});
  return static_cast<OpId>(ops_.size() - 1);
}

void StepOperations::then(int stage, StepPart part, std::int64_t times, Among among) {
  const bool calls = std::holds_alternative<Call>(part.work);
  const Stream stream = calls ? Stream::communication : Stream::compute;
  last(stage) = {add(stage, std::move(part), stream, last(stage), times, among)};
}

std::vector<StepPart> StepDraft::momenta(const ProcessGroup& among, double elements) const {
  return buffer(among, padded_share(levels_of(training.exchange, among), elements));
}

std::vector<StepPart> StepDraft::buffer(const ProcessGroup& among, std::int64_t padded) const {
  return compressed_allreduce(training.optimizer(), training.backend(), training.kernels,
                              levels_of(training.exchange, among), padded,
                              gradient_bytes(training));
}

}  // namespace lambcast
