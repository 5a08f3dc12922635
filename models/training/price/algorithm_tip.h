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

// A collective as forecast: what runs it, for how long, and what else may.
struct TippingCollective {
  Op op = Op::all_reduce;
  Bytes size;
  std::string algorithm, protocol;
  Duration time;
  Tip tip{};

  // Returns the largest change of its time near the switching point.
  Duration moves() const;
};

// A note where what else may run lasts a tenth longer or shorter (at the very switching point, a
// hundredth), or a message of twice the size is forecast faster.
std::optional<Finding> find_tip(const TippingCollective& collective);

}  // namespace lambcast
