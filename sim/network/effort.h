// Counts of the simulator's own work, for diagnostics.
#pragma once

#include <chrono>
#include <cstdint>

namespace lambcast {

struct Effort {
  std::int64_t events = 0;  // of the engine
  std::int64_t flows = 0;   // started
  std::int64_t solves = 0;  // of max-min rates, each over the flows that share links
  std::int64_t filled = 0;  // flows whose rates were filled, of all solves

  // Collectives planned, by every algorithm that they might take:
  std::int64_t routes = 0;               // found, one a flow
  std::chrono::nanoseconds routing{0};   // to find them
  std::int64_t lowered = 0;              // schedules laid on the network
  std::chrono::nanoseconds lowering{0};  // to write them out and to price their rounds

  Effort operator-(const Effort& before) const {
    return {events - before.events,   flows - before.flows,      solves - before.solves,
            filled - before.filled,   routes - before.routes,    routing - before.routing,
            lowered - before.lowered, lowering - before.lowering};
  }
};

// Returns the totals of this thread since it began; callers subtract an earlier value.
Effort& effort();

}  // namespace lambcast
