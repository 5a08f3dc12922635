#include "models/device/compute_interval.h"

#include <algorithm>
#include <cmath>

namespace lambcast {
namespace {

// Blocks get the constant of times by another program, since they are at least as uncertain.
const HeldOut& constant_of(Basis basis) {
  switch (basis) {
    case Basis::this_machine:
      return held_out::this_machine;
    case Basis::this_device:
    case Basis::blocks:
      return held_out::this_device;
    case Basis::other_model:
      return held_out::other_model;
    case Basis::kernels:
    case Basis::rate:
      break;
  }
  return held_out::rate;
}

}  // namespace

std::string_view name_of(Basis basis) {
  constexpr std::string_view names[] = {"this_machine", "this_device", "blocks",
                                        "kernels",      "other_model", "rate"};
  return names[static_cast<std::size_t>(basis)];
}

ComputeWidth compute_width(Basis basis, double micro_batch_doublings, double seq_len_doublings) {
  const HeldOut& constant = constant_of(basis);
  ComputeWidth width{std::hypot(constant.off, held_out::micro_batch.off * micro_batch_doublings,
                                held_out::seq_len.off * seq_len_doublings),
                     std::nullopt};
  if (basis > Basis::this_device) return width;
  width.coverage = constant.coverage();
  if (micro_batch_doublings > 0)
    width.coverage = std::min(*width.coverage, held_out::micro_batch.coverage());
  if (seq_len_doublings > 0)
    width.coverage = std::min(*width.coverage, held_out::seq_len.coverage());
  return width;
}

}  // namespace lambcast
