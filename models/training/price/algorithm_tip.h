// Finding for a collective whose size is near a switching point of the library's own selection
// rule.
//
// NCCL and Open MPI select by constants that do not depend on the network
// (sim/collectives/nccl_tuning.h, choice.h), so they may take the slower of two algorithms. A
// larger message beyond the switching point is then faster: on two nodes of GH200 over TCP
// (alps-gh200-tcp), 1,502 us were measured for 1 MiB and 922 for 2. If NCCL's estimates of two
// algorithms are close, another release, plugin or topology takes the other.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "models/finding.h"
#include "sim/collectives/collective.h"

namespace lambcast {

// A forecast collective: its algorithm and protocol, its time, and the alternatives near a
// switching point.
struct TippingCollective {
  Op op = Op::all_reduce;
  Bytes size;
  std::string algorithm, protocol;
  Duration time;
  Tip tip{};

  // Returns the largest change of the collective's time near the switching point.
  Duration moves() const;
};

// Returns a note if the alternative is more than a tenth faster or slower (a hundredth at the
// switching point itself), if a message of twice the size is a hundredth faster, or if the time is
// approximate. The message calls the collective by `name`, if that is not empty.
std::optional<Finding> find_tip(const TippingCollective& collective, std::string_view name = {});

}  // namespace lambcast
