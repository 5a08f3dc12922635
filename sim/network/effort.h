// How much work simulating was, for people who ask what the program did.
#pragma once

#include <chrono>
#include <cstdint>

namespace lambcast {

struct Effort {
  std::int64_t events = 0;  // of the engine
  std::int64_t flows = 0;   // started
  std::int64_t solves = 0;  // of max-min rates, each over the flows that share links

  // Collectives planned, by every algorithm that they might take:
  std::int64_t routes = 0;               // found, one a flow
  std::chrono::nanoseconds routing{0};   // to find them
  std::int64_t lowered = 0;              // schedules laid on the network
  std::chrono::nanoseconds lowering{0};  // to write them out and to price their rounds

  Effort operator-(const Effort& before) const {
    return {events - before.events,    flows - before.flows,     solves - before.solves,
            routes - before.routes,    routing - before.routing, lowered - before.lowered,
            lowering - before.lowering};
  }
};

// Of this thread since it began; those who ask subtract what it was before.
Effort& effort();

}  // namespace lambcast
