// Which exchange of gradients a training runs; what each does is in gradient_exchange.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/error.h"

namespace lambcast {

struct Exchange {
  enum class Kind {
    all_reduce,
    onebit,
    fp8,
    int8,
    int4,
    qgz,
    powersgd,
    topk,
    randomk,
    local,
    neighbour_ring,
    neighbour_exponential
  };
  Kind kind = Kind::all_reduce;
  double parameter = 0;  // R, SHARE or H
  friend bool operator==(const Exchange&, const Exchange&) = default;
};

// "onebit", "fp8", "powersgd:4", "topk:1%", "local:16", "neighbours:ring". Throws Error (usage).
Exchange parse_exchange(const std::string& text, const Where& where);
// As it is written.
std::string name_of(const Exchange& exchange);

// Steps of which one sends: H of local:H, else 1.
std::int64_t steps_per_exchange(const Exchange& exchange);

// To how many others a rank sends its weights: both sides of a ring, one peer of an exponential
// graph; 0 of exchanges among all.
int neighbours(const Exchange& exchange, int ranks);

// Bytes kept per element: owed errors (onebit: those of a server too), the outer optimizer's
// weights and momentum, the weights of neighbours. `shared`: ranks share optimizer states, so that
// none serves.
double exchange_state_bytes(const Exchange& exchange, int ranks, bool shared);

// Why such an exchange cannot stand in for the reduction of ZeRO's `stage`; empty: it can.
std::string refused_with_zero(const Exchange& exchange, std::int64_t stage);

// One of each kind, with the parameters that their papers and tutorials start from.
std::vector<Exchange> usual_exchanges();

}  // namespace lambcast
