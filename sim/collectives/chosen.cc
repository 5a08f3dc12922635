#include "sim/collectives/chosen.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/counted.h"
#include "sim/base/error.h"
#include "sim/collectives/algorithms.h"
#include "sim/collectives/nccl_tuning.h"

namespace lambcast {
namespace {

// Returns the algorithms whose costs were measured at a size; empty if no table measured any.
std::vector<std::string> measured_of(const Transport& transport, Bytes size) {
  for (const MeasuredAlgorithms& band : transport.measured)
    if (size < band.below || &band == &transport.measured.back()) return band.names;
  return {};
}

bool goes_by_nccl(const CollectiveRequest& request, const Transport& transport) {
  return request.rules == DecisionRules::nccl && transport.tuning;
}

// Returns the algorithms with NCCL's own estimates, cheapest first.
std::vector<NcclChoice> rated_by_nccl(const CollectiveRequest& request,
                                      const Transport& transport) {
  NcclTuning tuning = *transport.tuning;
  if (!request.protocol.empty()) {
    tuning.ll = request.protocol == "LL";
    tuning.ll128 = request.protocol == "LL128";
    tuning.simple = request.protocol == "Simple";
  }
  const ProcessGroup& group = request.group;
  return nccl_choices(tuning, request.op, request.size, group.nodes(), group.per_node);
}

// Returns the choices that the request's operation and group support.
std::vector<NcclChoice> supported(std::vector<NcclChoice> choices,
                                  const CollectiveRequest& request) {
  std::erase_if(choices, [&](const NcclChoice& choice) {
    return !supports(std::string(choice.algorithm), request.op, request.group);
  });
  return choices;
}

Chosen chosen_by_nccl(const CollectiveRequest& request, const Transport& transport) {
  const auto choices = rated_by_nccl(request, transport);
  if (choices.empty() && request.op == Op::all_reduce)
    throw Error(Exit::usage,
                fmt::format("nccl.algorithms leaves no algorithm for an all_reduce on {}",
                            counted(request.group.nodes(), "node")));
  const std::vector<std::string> measured = measured_of(transport, request.size);
  const auto is_measured = [&](const std::string& name) {
    return std::find(measured.begin(), measured.end(), name) != measured.end();
  };
  Chosen chosen;
  for (const NcclChoice& choice : supported(choices, request)) {
    const std::string name(choice.algorithm);
    if (chosen.costed.empty())
      chosen = {name, {name}};
    else if (!is_measured(chosen.algorithm) && name == "ring" && is_measured(name))
      chosen.costed.push_back(name);
  }
  return chosen;
}

// Returns the algorithm that NCCL chooses or, if its rule is unknown, the candidates to compare.
Chosen chosen(const CollectiveRequest& request, const Transport& transport) {
  if (goes_by_nccl(request, transport)) {
    Chosen by_nccl = chosen_by_nccl(request, transport);
    if (!by_nccl.costed.empty()) return by_nccl;
  }
  return {{},
          candidates(request.rules, request.op, request.size, request.group,
                     std::any_of(transport.protocols.begin(), transport.protocols.end(),
                                 [](const Protocol& one) { return one.in_switch.has_value(); }))};
}

// Returns NCCL's choices with estimates; empty if the request or the library leaves no choice.
std::vector<NcclChoice> rated(const CollectiveRequest& request, const Transport& transport) {
  if (!request.algorithm.empty() || !goes_by_nccl(request, transport)) return {};
  return supported(rated_by_nccl(request, transport), request);
}

// Another algorithm than the one that runs, and NCCL's estimate of it divided by that of the best
// algorithm.
struct Rated {
  std::string_view algorithm;
  double apart;
};

std::optional<Rated> next_best(const std::vector<NcclChoice>& choices, std::string_view runs) {
  for (const NcclChoice& choice : choices)
    if (choice.algorithm != runs) return Rated{choice.algorithm, choice.time / choices[0].time};
  return std::nullopt;
}

// Returns transports with the NIC's nominal rate moved to the other side of a listed speed
// (nccl_tuning.h), if it is very close to one.
std::vector<Transport> beside_listed_speed(const CollectiveRequest& request,
                                           const Transport& transport) {
  std::vector<Transport> all;
  if (request.group.nodes() == 1) return all;
  constexpr double hardly = 0.0005;
  for (const double factor : {1 - hardly, 1 + hardly}) {
    if (!lists_other_speed(*transport.tuning, request.group.per_node, factor)) continue;
    all.push_back(transport);
    all.back().tuning->nic_GBps *= factor;
  }
  return all;
}

// Returns whether NCCL spreads both requests over equally many channels, under each protocol.
bool spread_alike(const CollectiveRequest& one, const CollectiveRequest& other,
                  const Transport& transport) {
  if (one.rules != DecisionRules::nccl || !transport.tuning) return true;
  const auto channels = [&](const CollectiveRequest& of, const Protocol& protocol, bool ring) {
    return nccl_channels_for(*transport.tuning, protocol.name, ring, of.size, of.group.nodes(),
                             of.group.per_node);
  };
  return std::ranges::all_of(transport.protocols, [&](const Protocol& protocol) {
    return channels(one, protocol, true) == channels(other, protocol, true) &&
           channels(one, protocol, false) == channels(other, protocol, false);
  });
}

}  // namespace

Chosen chosen_for(const CollectiveRequest& request, const Transport& transport) {
  if (request.algorithm.empty()) return chosen(request, transport);
  const bool reduces = transport.tuning && transport.tuning->sharp;
  if (request.group.nodes() > 1 && in_network(request.algorithm, request.group) && !reduces)
    fail_input({"", 0, "--algorithm"},
               fmt::format("{} over {} nodes needs InfiniBand switches that reduce: set "
                           "nccl.sharp = true",
                           request.algorithm, request.group.nodes()));
  return {request.algorithm, {request.algorithm}};
}

std::optional<RatedAlike> rival_of(const CollectiveRequest& request, const Transport& transport) {
  const std::vector<NcclChoice> choices = rated(request, transport);
  if (choices.empty()) return std::nullopt;
  const std::string_view runs = choices[0].algorithm;
  std::optional<Rated> nearest = next_best(choices, runs);
  for (const Transport& beside : beside_listed_speed(request, transport)) {
    const auto other = next_best(rated(request, beside), runs);
    if (other && (!nearest || other->apart < nearest->apart)) nearest = other;
  }
  if (!nearest || nearest->apart > near_tip) return std::nullopt;
  return RatedAlike{std::string(nearest->algorithm), nearest->apart < at_tip};
}

bool runs_alike(const CollectiveRequest& one, const CollectiveRequest& other,
                const Transport& transport) {
  const std::vector<std::string> costed = chosen_for(one, transport).costed;
  return costed == chosen_for(other, transport).costed && spread_alike(one, other, transport) &&
         std::ranges::none_of(costed, [](const auto& name) { return name.starts_with("nvls"); });
}

}  // namespace lambcast
