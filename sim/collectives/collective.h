// One collective on one machine: its algorithm and protocol, its traffic, its time without
// contention, and the program that replays it inside a step.
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
  std::string algorithm;      // empty: the library's choice
  std::string protocol;       // empty: the library's choice
  bool expand = false;        // --symmetry off: every rank and every round is simulated
  bool priced_alone = false;  // only the closed form is used; no program is built
  // Place of the group if other groups overlap it; the full machine is then used.
  std::optional<Place> beside{};
};

// The approximation of a collective that is not simulated in full, and the range that should hold
// the true time.
struct Approximation {
  std::array<int, 2> ranks{};  // ranks of the two groups used (stand_in.h), if any
  double scale = 1;            // time of the collective divided by that of its program
  double low = 1, high = 1;    // range of the true time, relative to the time
};

struct Collective {
  Op op;
  Bytes size;
  std::string algorithm;  // algorithm that all other members refer to
  std::string protocol;
  Duration time;  // analytic time without contention
  Traffic traffic;
  std::shared_ptr<const Machine> machine;
  // Program with one flow for all equal sends, except for overlapping groups and if `expand` is
  // set. Null if only the closed form is used (`priced_alone`).
  std::shared_ptr<const CommProgram> program;
  std::shared_ptr<const Topology> topology;  // topology of the program's links
  // The library's own choice if a measured algorithm is priced in its place (Transport::measured);
  // else the same as `algorithm`.
  std::string chosen;
  bool counts_links = false;  // CommSchedule::everybody
  std::optional<Approximation> approximation{};
};

// Returns how a network model's time of the collective is approximated, or nothing if it is exact.
std::optional<Approximation> approximation_of(const Collective& collective, NetworkModel model);

// Throws Error (usage) if a requested algorithm or protocol does not exist or apply.
Collective plan_collective(const CollectiveRequest& request, Machines& machines,
                           const Transport& transport);

// Another way to run a collective, and its time: the algorithm that NCCL's rule almost selects
// (chosen.h), so that another release, plugin or topology may run it.
struct Rival {
  std::string algorithm, protocol;
  Duration time;
  bool at_tip = false;  // a small change of the description selects it
};

// Uncertainty near a switching point of the library's rule. `rival` is the other algorithm that
// NCCL may run at this size. `twice` is a message of twice the size, if it is faster because the
// library runs another algorithm or protocol, larger chunks or more channels then. Times are those
// of one network model.
struct Tip {
  std::optional<Rival> rival{};
  std::optional<Rival> twice{};
  std::optional<Approximation> approximation{};  // approximation of the time, set by the caller
};
// `time` is the time of the request under `network`.
Tip tip_of(const CollectiveRequest& request, Machines& machines, const Transport& transport,
           Duration time, NetworkModel network = NetworkModel::analytic);

// Times of one request at many sizes for little more than the cost of one. All bytes of a schedule
// grow with the size, so every algorithm is laid out, routed and lowered once, for reference_size,
// and its rounds are scaled. Latencies are those of the requested size.
class CollectiveCurve {
 public:
  CollectiveCurve(const CollectiveRequest& request, std::shared_ptr<const Transport> transport,
                  Machines machines);

  // Returns the result of plan_collective, up to rounding to a picosecond per round. The algorithm
  // is the library's choice. The names live as long as the curve.
  struct Forecast {
    Duration time;
    std::string_view algorithm, protocol;
  };
  Forecast forecast(Bytes size);
  Duration time(Bytes size) { return forecast(size).time; }
  // Returns the member `rival` of what tip_of() returns.
  std::optional<Rival> rival(Bytes size);

  // Changes rates and latencies, on machines with the same wiring. Schedules and routes are kept
  // and only priced again; flow times are kept too if no rate changed.
  void reprice(std::shared_ptr<const Transport> transport, Machines machines);

 private:
  static constexpr Bytes reference_size{1 << 30};

  struct Lowered {
    const Protocol* protocol;
    HopLatency hop;
    std::vector<RoundTransfer> transfers;  // computed at the reference size
  };
  struct Variant {
    std::shared_ptr<const LaidOut> laid;
    std::vector<Lowered> protocols;
    bool priced = false;       // whether `protocols` are those of the transport
    bool transferred = false;  // whether `transfers` belong to these protocols
  };
  using Variants = std::map<std::string, Variant>;  // indexed by algorithm
  // The algorithm that runs at a size, and the candidates to be priced.
  struct Choice {
    std::string_view algorithm;  // empty: the cheapest of `costed`
    std::vector<Variants::value_type*> costed;
  };

  const Choice& choice(Bytes size);
  Variants::value_type& variant(const std::string& algorithm);
  Variant written_out(const std::string& algorithm);
  Machines::Wired& machine_of(const std::string& algorithm);
  const Variant& priced(Variants::value_type& of);
  // Returns the time of the cheapest protocol at the size of the request, or nothing if no protocol
  // is offered.
  std::optional<Forecast> cheapest(Variants::value_type& costed);

  CollectiveRequest request_;
  std::shared_ptr<const Transport> transport_;
  Machines machines_;
  Variants variants_;
  std::map<Bytes, Choice> choices_;
};

// Returns whether max-min sharing may be faster than the closed form: in some round, unequal flows
// share a link, so that some flows use capacity that others leave free (fair_share.h).
bool shares_are_unlike(const Collective& collective);

// Returns the time of the program without contention on a network model, simulated event by event.
Duration simulate(const Collective& collective, NetworkModel model);

}  // namespace lambcast
