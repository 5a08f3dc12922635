// One round of training by sites that exchange weights every H steps (DiLoCo, arXiv 2311.08105, and
// related methods), in closed form. Inside a site all ranks have the same weights at every step, so
// any sharding is possible there. Between two exchanges each site trains on its own.
//
//   R sites, P weights, b bits per weight on the wire, F fragments (Streaming DiLoCo, arXiv
//   2501.18512)
//   p = P b / 8 / F                               bytes of a fragment; one is sent every H/F steps
//
//   T, the time of a fragment, on the slowest link; up and down as reached by TCP (site_group.h):
//
//     ring     2 (R-1)/R p / min(up, down) + (R-1) rtt    a hop adds the codes and sends the sum
//     gather   p / min(up, down) + (R-1)/2 rtt      codes that cannot be added (E3M0, top-k)
//     store    p / up + (R-1) p / down + 2 rtt            one upload, R-1 downloads
//
// The last line is for equal sites. Sites with unequal links download each payload when its
// upload ends. A property test (site_flows_test.cc) compares these times with the flow network.
//
//   t          the step of the last site that the round waits for
//   exposed    F max(0, T - min(tau, H/F) t) a round; tau steps pass before the result is used
//              at least F T - H t: the link carries one fragment at a time
//   a round    H t + exposed
//
// "By layer": each layer leaves when its backward pass ends and is awaited by its next forward
// pass. Fragment f = 0 .. F-1 of L layers has the layers f, f+F, f+2F, ... (strided, as in
// Streaming DiLoCo), so its lowest one has the passes of f layers below it as slack:
//
//   exposed    sum over f of max(0, max(T - 2/3 (1 - F/L) t, F/L T) - min(tau, H/F) t - f/L t)
//
// The first term is the whole transfer, which starts at the backward pass of the fragment's highest
// layer; the second is the transfer of the lowest layer alone. The programs that ship (prime,
// torchft, templar) wait for the whole exchange instead.
//
// With a quorum K the round starts when K of R sites are ready, and the work of the other sites in
// this round is lost. Utilisation is the throughput of the sites, as a share of what they reach on
// their own: without exchanges, failures and `slow`. All sites have the same batch.
//
// A pair of sites with a rate and round trip of its own (site_group.h) delays a ring that crosses
// it, in the best order of up to 12 sites (in the listed order if there are more), and each gather.
//
// Failures of any site delay all sites waited for, by the outage and half of the steps of a round,
// which the failed site computes again: f of membership.h adds up over the sites, and 1 / (1 + sum
// f) of the time is left. A member that leaves delays nobody: its share is missing. If a quorum
// leaves sites out, they replace members that fail or leave: rounds go on while K of R sites train.
//
// Decoupled sites (Decoupled DiLoCo, arXiv 2604.21428) wait for nobody: each exchanges its
// fragments with a syncer that merges them (up p, down p, 2 rtt), and is slow, fails and leaves on
// its own. Their quorum K is the number of sites that must train at a moment for the run to go on.
//
// Left out: encoding (hidden in separate threads in prime), the update of the outer optimizer (some
// 40 bytes of memory traffic per weight and round), packet loss, hops through other sites.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "topologies/sites/membership.h"
#include "topologies/sites/site_group.h"

namespace lambcast {

// Encoding of a weight's change on the wire.
struct OuterCodec {
  std::string_view name;
  double bits = 32;  // bits per weight
  bool sums = true;  // whether a ring may add codes at each hop
};
std::span<const OuterCodec> outer_codecs();
// Returns the codec. Throws Error (usage) naming `flag` if the name is unknown.
const OuterCodec& outer_codec(std::string_view name, const std::string& flag);

struct OuterExchange {
  double weights = 0;  // P
  OuterCodec codec;
  int every = 1;                // H, in steps
  int fragments = 1;            // F; at most H
  int delay = 0;                // tau, in steps
  std::optional<int> layers{};  // layers of the model, for an exchange by layer
  std::optional<int> quorum{};  // K; absent: all sites, or one if decoupled
  bool decoupled = false;
};

// Throws Error (usage) if a fragment has less than one step, or the quorum is not 2 to `sites` (1
// to `sites` if decoupled).
void require_possible(const OuterExchange& exchange, std::size_t sites);

struct OuterRound {
  Duration compute;   // H steps of the last site waited for
  Duration transfer;  // time T of a fragment
  Duration exposed;   // summed over all fragments
  Duration time() const { return compute + exposed; }
  Bytes sent, received;              // bytes of a site in the round
  std::vector<std::size_t> members;  // sites that the round waits for, in the order they are ready
  std::vector<double> work;          // for each site: share of its rounds that enters the model
  std::vector<Duration> times;       // for each site: time from one of its rounds to the next
  Expected training;                 // sites that can train at a moment (if decoupled: that train)
  std::size_t pace = 0;              // the site that the links must keep up with
  double kept = 1;                   // share of its time that the exchange leaves
  double up_share = 1;     // share of the time without failures and the work that they undo
  double utilisation = 1;  // share of the sites' own throughput
};

// Returns the round of sites with step times `steps`, one for each site of the group.
OuterRound outer_round(const SiteGroup& group, std::span<const Duration> steps,
                       const OuterExchange& exchange);

// Returns the bandwidth (as reached by TCP, equal up and down at all sites) at which communication
// takes 1 - `utilisation` of a round. Returns nothing if latencies already take more. With
// `utilisation` 1 all communication is hidden.
std::optional<Bandwidth> bandwidth_for(double utilisation, const SiteGroup& group, Duration step,
                                       const OuterExchange& exchange);

}  // namespace lambcast
