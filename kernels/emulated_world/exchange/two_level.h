// A 1-bit or quantised all-reduce on two levels: the ranks of a node average their buffers, nodes
// exchange the averages in few bits, and every rank of a node receives the result.
//
//   leaders   one exchange of the whole buffer between the first ranks of the nodes; the result is
//             broadcast decoded (Bagua's form)
//   shares    rank j of every node has share j of its node's average (layout.h, share_layout), and
//             exchanges it with the ranks j of the other nodes; the node gathers the coded
//             result, and every rank decodes all of it
//
// The first level is exact except for the rounding of its format, so that on m nodes this is the
// exchange of m ranks, each with the mean of its node: bit for bit for leaders, and share by share.
// Within the node partial sums are rounded to the format rank by rank, and their mean once more.
#pragma once

#include "kernels/emulated_world/compressed_allreduce.h"
#include "kernels/emulated_world/exchange/quantised_allreduce.h"

namespace lambcast::emulated {

enum class Nodes { leaders, shares };

struct TwoLevel {
  int per_node = 1;  // must divide the number of ranks
  Nodes nodes = Nodes::leaders;
  WireFormat in_node = WireFormat::fp32;  // plain: fp32, fp16 or bf16
  // Absent: 1-bit signs with error feedback.
  std::optional<Quantiser> quantiser = {};
  bool error_feedback = true;  // if there is a quantiser
  // State of the leaders, or one for each share.
  std::vector<ErrorFeedback> signs = {};
  std::vector<QuantisedAllreduce> quantised = {};
};
// Throws Error unless per_node divides the ranks.
Wire average(TwoLevel& state, Buffers buffers);

}  // namespace lambcast::emulated
