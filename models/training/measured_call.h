// The collective that a source of error stands for (error_source.h).
#pragma once

#include <cstddef>
#include <optional>

#include "sim/collectives/backend.h"
#include "sim/collectives/schedule.h"

namespace lambcast {

struct MeasuredCall {
  Backend backend = Backend::nccl;
  Op op = Op::all_reduce;
};

// Nothing for sources that are kernels, copies or passes.
std::optional<MeasuredCall> measured_call(std::size_t source);

}  // namespace lambcast
