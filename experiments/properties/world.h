// For tests: what-ifs drawn at random from all keys and values. The project's own random generator
// makes failures reproducible from their seed. Most what-ifs can run; the others are rejected.
#pragma once

#include <cstdint>

#include "experiments/scenario/what_if.h"

namespace lambcast {

// Generator: splitmix64 (Steele, Lea, Flood 2014).
struct Dice {
  std::uint64_t state;
  std::uint64_t next();
  std::size_t below(std::size_t bound) { return next() % bound; }
  bool one_in(std::size_t chances) { return below(chances) == 0; }
};

WhatIf draw_world(std::uint64_t seed);

// Returns the world as flags of `simulate`, to reproduce it.
std::string in_flags(const WhatIf& world);

}  // namespace lambcast
