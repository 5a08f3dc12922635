// Bytes, times and numbers of collectives, added up.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"

namespace lambcast {

struct Call;

// A call of a plan, which outlives this, and how often it is made.
struct CallsMade {
  const Call* call;
  std::int64_t times;
};

// Adds each call of the plan once.
inline void add(std::vector<CallsMade>& calls, const Call& call, std::int64_t times) {
  if (times == 0) return;
  for (CallsMade& made : calls) {
    if (made.call != &call) continue;
    made.times += times;
    return;
  }
  calls.push_back({&call, times});
}

// Total network load of the collectives of one micro batch.
struct Wire {
  Bytes per_gpu, per_node;
  std::int64_t collectives = 0;
  Duration communication;

  Wire& operator+=(const Wire& other) {
    per_gpu += other.per_gpu;
    per_node += other.per_node;
    collectives += other.collectives;
    communication += other.communication;
    return *this;
  }
};

}  // namespace lambcast
