// Finds flows and links that have equal max-min rates and loads, by colour refinement (Paige and
// Tarjan, SIAM J. Comput. 16(6), 1987, solve the same problem):
//
//   two links are alike   if they start with one colour, and have as many flows of each class, at
//                         the same hop of their routes
//   two flows are alike   if they start with one colour, and their routes cross links that are
//                         alike in the same order
//
// This is the coarsest partition that is stable under both rules. Max-min rates are unique and
// depend only on link loads. So flows of a class have one rate, if flows that differ in bytes,
// caps or weights, and links that differ in capacity, start with different colours.
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
  std::vector<Colour> colours;  // initial colour of each flow
};

struct Alike {
  struct Flows {
    std::uint32_t first, count;
  };
  struct Links {
    LinkId first;
    std::uint32_t count;
  };
  // Classes of links that are crossed by the same flows, as on the way from a GPU to its NIC. Only
  // the narrowest class limits these flows.
  using Trunk = std::vector<Links>;

  std::vector<std::vector<Flows>>
      flows;  // indexed by list of flows; classes are ordered by their first flows
  std::vector<LinkLists> paths;  // paths of these classes, as lists of trunks
  std::vector<Trunk> trunks;
};

// Returns nothing if a route crosses two links of one class, as through a ring of switches.
using ColourOfLink = std::function<Colour(LinkId)>;
std::optional<Alike> find_alike(std::span<const ColouredFlows> lists, std::size_t links,
                                const ColourOfLink& colour_of);

// Returns a topology with a link for each trunk, with the capacity of its narrowest class.
Topology trunk_topology(std::span<const Alike::Trunk> trunks, const Topology& topology);

}  // namespace lambcast
