// One collective on one machine: which algorithm and protocol it takes, what it puts on the wires,
// how long it lasts on its own, and the program that replays it inside a step.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/collectives/choice.h"
#include "sim/collectives/lower.h"
#include "sim/collectives/machines.h"

namespace lambcast {

struct CollectiveRequest {
  Op op = Op::all_reduce;
  Bytes size;
  ProcessGroup group;
  DecisionRules rules = DecisionRules::nccl;
  std::string algorithm;      // empty: as the library chooses
  std::string protocol;       // empty: as the library chooses
  bool expand = false;        // --symmetry off: every rank and every round on its own
  bool priced_alone = false;  // by the closed form; no program is written
  // Place of the group if others overlap it; the full machine is used then.
  std::optional<Place> beside{};
};

// How the time of a collective that is not simulated whole was found, and the range that holds the
// true one.
struct Approximation {
  std::array<int, 2> ranks{};  // of the groups that it lies between or beyond (stand_in.h), if any
  double scale = 1;            // its time over that of the program
  double low = 1, high = 1;    // over its time
};

struct Collective {
  Op op;
  Bytes size;
  std::string algorithm;  // the one that the time and all the rest are of
  std::string protocol;
  Duration time;  // analytic, alone on the machine
  Traffic traffic;
  std::shared_ptr<const Machine> machine;
  // One flow for all sends that are alike, except in groups that others overlap and if `expand` is
  // set. Null if priced alone.
  std::shared_ptr<const CommProgram> program;
  std::shared_ptr<const Topology> topology;  // the one the program's links belong to
  // The library's own choice, if a measured algorithm is costed in its place (Transport::measured);
  // else the same one.
  std::string chosen;
  bool counts_links = false;  // CommSchedule::everybody
  std::optional<Approximation> approximation{};
};

// Returns how a network model's time of the collective is approximated, if it is.
std::optional<Approximation> approximation_of(const Collective& collective, NetworkModel model);

// Throws Error (usage) when a forced algorithm or protocol does not exist or apply.
Collective plan_collective(const CollectiveRequest& request, Machines& machines,
                           const Transport& transport);

// Algorithm that NCCL's rule is close to taking instead (chosen.h), so that another release, plugin
// or topology may run it, and its analytic time.
struct Rival {
  std::string algorithm, protocol;
  Duration time;
  bool at_tip = false;  // runs if a number of the description changes hardly
};

// Uncertainty near a switching point of NCCL's rule. `rival` is the other algorithm that may run at
// this size. `twice` is the time of a message of twice the size, if it is shorter because NCCL runs
// another algorithm then.
struct Tip {
  std::optional<Rival> rival{};
  std::optional<Duration> twice{};
  std::optional<Approximation> approximation{};  // of the time itself, set by the caller
};
Tip tip_of(const CollectiveRequest& request, Machines& machines, const Transport& transport,
           Duration time);

// Times of one request over many sizes at little more than the cost of one. All bytes of a schedule
// grow with the size, so every algorithm is written out, routed and lowered once, for
// reference_size, and its rounds are scaled. Latencies are those of the requested size.
class CollectiveCurve {
 public:
  CollectiveCurve(const CollectiveRequest& request, std::shared_ptr<const Transport> transport,
                  Machines machines);

  // The same as of plan_collective, to the rounding of a picosecond in each round; the algorithm is
  // the one chosen. The names live as long as the curve.
  struct Forecast {
    Duration time;
    std::string_view algorithm, protocol;
  };
  Forecast forecast(Bytes size);
  Duration time(Bytes size) { return forecast(size).time; }
  // As tip_of has it.
  std::optional<Rival> rival(Bytes size);

  // Changes rates and latencies from here on, on machines with the same wiring. Schedules and
  // routes stay and are only priced again; flow times stay too if no rate changed.
  void reprice(std::shared_ptr<const Transport> transport, Machines machines);

 private:
  static constexpr Bytes reference_size{1 << 30};

  struct Lowered {
    const Protocol* protocol;
    HopLatency hop;
    std::vector<RoundTransfer> transfers;  // at the reference size
  };
  struct Variant {
    std::shared_ptr<const LaidOut> laid;
    std::vector<Lowered> protocols;
    bool priced = false;       // protocols are the transport's
    bool transferred = false;  // and so are their transfers
  };
  using Variants = std::map<std::string, Variant>;  // by algorithm
  // Algorithm that runs at a size, and the candidates for its cost.
  struct Choice {
    std::string_view algorithm;  // empty: whichever is the cheapest
    std::vector<Variants::value_type*> costed;
  };

  const Choice& choice(Bytes size);
  Variants::value_type& variant(const std::string& algorithm);
  Variant written_out(const std::string& algorithm);
  Machines::Wired& machine_of(const std::string& algorithm);
  const Variant& priced(Variants::value_type& of);
  // Returns the cheapest protocol's time at the size of the request; empty: none is offered.
  std::optional<Forecast> cheapest(Variants::value_type& costed);

  CollectiveRequest request_;
  std::shared_ptr<const Transport> transport_;
  Machines machines_;
  Variants variants_;
  std::map<Bytes, Choice> choices_;
};

// Whether max-min sharing may end it sooner than the closed form of time: in some round, flows that
// are unlike share a link, and what the narrowest leaves unused others take up (fair_share.h).
bool shares_are_unlike(const Collective& collective);

// Runs the program alone on a network model, event by event.
Duration simulate(const Collective& collective, NetworkModel model);

}  // namespace lambcast
