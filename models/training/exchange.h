// Which exchange of gradients a training runs; what each does is in gradient_exchange.h.
#pragma once

#include <cstdint>
#include <string>

#include "sim/base/error.h"

namespace lambcast {

struct Exchange {
  enum class Kind { all_reduce, fp8, int8, int4, powersgd, topk, randomk, local };
  Kind kind = Kind::all_reduce;
  double parameter = 0;  // R, SHARE or H
  friend bool operator==(const Exchange&, const Exchange&) = default;
};

// "fp8", "powersgd:4", "topk:1%", "local:16". Throws Error (usage).
Exchange parse_exchange(const std::string& text, const Where& where);
// As it is written.
std::string name_of(const Exchange& exchange);

// Steps of which one sends: H of local:H, else 1.
std::int64_t steps_per_exchange(const Exchange& exchange);

// Bytes kept per element: owed errors, the outer optimizer's weights and momentum.
double exchange_state_bytes(const Exchange& exchange);

}  // namespace lambcast
