// Algorithms by which a request is priced. For NCCL it is the one that its rule selects by
// constants that do not depend on the network (nccl_tuning.h). Near a switching point of that rule,
// rival_of returns the algorithm that another release, plugin or topology would run instead.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/collective.h"

namespace lambcast {

// The algorithm that the library runs, and the candidates to be priced.
struct Chosen {
  std::string algorithm;  // empty: the cheapest of `costed`
  std::vector<std::string> costed;
};

Chosen chosen_for(const CollectiveRequest& request, const Transport& transport);

// If NCCL's estimates of two algorithms differ by less than this factor, its choice is uncertain.
// Over the sizes and layouts of Perlmutter's tables, five earlier tunings of NCCL (from 2.12 on)
// choose otherwise than 2.28 between ring and tree in 82 cases; in 42 of them the estimates of 2.28
// lie within this factor.
constexpr double near_tip = 1.25;

// If the estimates are this close, a small change of the description changes the choice.
constexpr double at_tip = 1.01;

struct RatedAlike {
  std::string algorithm;
  bool at_tip = false;
};

// Returns NCCL's next best algorithm if its estimate is close to that of the chosen one, or would
// be if the NIC's nominal rate differed by 0.05 %.
std::optional<RatedAlike> rival_of(const CollectiveRequest& request, const Transport& transport);

// Returns whether the library runs both requests, which differ in size, by the same algorithms over
// the same channels. Reductions in the NVLink switch never count as alike: they take larger chunks
// at some sizes (nvls_chunks).
bool runs_alike(const CollectiveRequest& one, const CollectiveRequest& other,
                const Transport& transport);

}  // namespace lambcast
