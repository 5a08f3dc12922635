// Flows and links that max-min rates treat alike, found by colour refinement (Paige and Tarjan,
// SIAM J. Comput. 16(6), 1987, solve the same problem):
//
//   two links are alike   if they have one colour at first, and carry as many flows of each class,
//                         at the same hop of their routes
//   two flows are alike   if they have one colour at first, and their routes cross links that are
//                         alike in the same order
//
// This is the coarsest partition that is stable under both rules. Max-min rates are unique and
// depend on link loads alone. So flows of a class have one rate, if first colours tell apart what
// differs in bytes, caps and weights, and links of unlike capacities.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "sim/network/network.h"

namespace lambcast {

using Colour = std::uint64_t;
Colour mixed(Colour a, Colour b);
Colour mixed(Colour a, double b);

struct ColouredFlows {
  const LinkLists* routes;
  std::vector<Colour> colours;  // at first, of each flow
};

struct Alike {
  struct Flows {
    std::uint32_t first, count;
  };
  struct Links {
    LinkId first;
    std::uint32_t count;
  };
  // Classes of links. Those that the same flows cross, as on the way from a GPU to its NIC, form a
  // trunk: only the narrowest of them limits.
  using Trunk = std::vector<Links>;

  std::vector<std::vector<Flows>> flows;  // by list of flows, in the order of the first of a class
  std::vector<LinkLists> paths;           // of these classes, over trunks
  std::vector<Trunk> trunks;
};

// Returns nothing if a route crosses two links of one class, as through a ring of switches.
using ColourOfLink = std::function<Colour(LinkId)>;
std::optional<Alike> find_alike(std::span<const ColouredFlows> lists, std::size_t links,
                                const ColourOfLink& colour_of);

// Returns a topology with a link for each trunk, as wide as the narrowest of its classes.
Topology trunk_topology(std::span<const Alike::Trunk> trunks, const Topology& topology);

}  // namespace lambcast
