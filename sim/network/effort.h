// How much work simulating was, for people who ask what the program did.
#pragma once

#include <cstdint>

namespace lambcast {

struct Effort {
  std::int64_t events = 0;  // of the engine
  std::int64_t flows = 0;   // started
  std::int64_t solves = 0;  // of max-min rates, each over the flows that share links

  Effort operator-(const Effort& before) const {
    return {events - before.events, flows - before.flows, solves - before.solves};
  }
};

// Of this thread since it began; those who ask subtract what it was before.
Effort& effort();

}  // namespace lambcast
