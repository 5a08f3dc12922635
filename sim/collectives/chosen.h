// Algorithms by which a request is costed. For NCCL it is the one that its rule takes, whose own
// constants (nccl_tuning.h) do not depend on the network. Near a switching point of that rule,
// rival_of returns the algorithm that another release, plugin or topology would run instead.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/collective.h"

namespace lambcast {

// Algorithm that the library runs, and the candidates for its cost.
struct Chosen {
  std::string algorithm;  // empty: whichever is the cheapest
  std::vector<std::string> costed;
};

Chosen chosen_for(const CollectiveRequest& request, const Transport& transport);

// NCCL's estimates that are so close to one another, as a factor, are no reason to trust which of
// the two runs. Of the 82 choices between ring and tree that five earlier tunings of NCCL,
// from 2.12 on, make otherwise than 2.28 over the sizes and layouts of Perlmutter's tables, 42 lie
// within it by the estimates of 2.28.
constexpr double near_tip = 1.25;

// Estimates that are so close change places when a number of the description changes hardly.
constexpr double at_tip = 1.01;

struct RatedAlike {
  std::string algorithm;
  bool at_tip = false;
};

// The next best algorithm, where NCCL rates it so close to what it takes, or would if the NIC's
// name plate differed by 0.05 %.
std::optional<RatedAlike> rival_of(const CollectiveRequest& request, const Transport& transport);

// Whether NCCL takes another for twice the size.
bool tips_before_twice(const CollectiveRequest& request, const Transport& transport);

}  // namespace lambcast
