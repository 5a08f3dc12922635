// Finding for a collective whose size is near a switching point of NCCL's own selection rule.
//
// NCCL weighs constants that do not depend on the network (sim/collectives/nccl_tuning.h), so it
// may take the slower of two algorithms. A larger message beyond the switching point is then
// faster: on two nodes of GH200 over TCP (alps-gh200-tcp), 1,502 us were measured for 1 MiB and 922
// for 2. If its estimates of the two are close, another release, plugin or topology takes the
// other.
#pragma once

#include <optional>
#include <string>

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
// switching point itself), if a message of twice the size is faster, or if the time is approximate.
std::optional<Finding> find_tip(const TippingCollective& collective);

}  // namespace lambcast
