// Counts of the simulator's own work, for diagnostics.
#pragma once

#include <chrono>
#include <cstdint>

namespace lambcast {

struct Effort {
  std::int64_t events = 0;  // events of the engine
  std::int64_t flows = 0;   // started flows
  std::int64_t solves = 0;  // solves of max-min rates, each over flows that share links
  std::int64_t filled = 0;  // flows whose rates were computed, over all solves

  // Sums over all algorithms that were considered for a collective:
  std::int64_t routes = 0;               // routes found, one per flow
  std::chrono::nanoseconds routing{0};   // time spent finding them
  std::int64_t lowered = 0;              // schedules turned into flow sets
  std::chrono::nanoseconds lowering{0};  // time spent on that and on pricing their rounds

  Effort operator-(const Effort& before) const {
    return {events - before.events,   flows - before.flows,      solves - before.solves,
            filled - before.filled,   routes - before.routes,    routing - before.routing,
            lowered - before.lowered, lowering - before.lowering};
  }
};

// Returns the totals of this thread since its start; callers subtract an earlier value.
Effort& effort();

}  // namespace lambcast
