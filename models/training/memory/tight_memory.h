// Whether a run fits into the memory of its GPUs by less than the forecast's error.
#pragma once

#include "models/training/memory/memory.h"

namespace lambcast {

// Returns whether the peak fits, but the high end of its interval does not.
inline bool is_tight(const MemoryForecast& memory, const Device& device) {
  return memory.peak <= device.memory_capacity && memory.high() > device.memory_capacity;
}

}  // namespace lambcast
