#include "experiments/advise/break_even_text.h"

#include <fmt/format.h>

namespace lambcast {
namespace {

// States at which bandwidths a gain is certain if it is expected at every bandwidth. The interval
// at the cluster's own bandwidth uses measurements of this cluster, so the gain may be certain only
// there.
std::string where_certain(const BreakEven& at, const Answer& answer) {
  const Bandwidth own = answer.scenario.training.cluster->nic_bandwidth.value;
  const bool certain_here = answer.merit().low > 1;
  if (!at.low)
    return certain_here ? fmt::format("certain only at this cluster's {}", to_text_bits(own))
                        : "not certain at any";
  const bool among = at.low_pays_above ? own >= *at.low : own <= *at.low;
  return fmt::format(
      "certain {} {}{}", at.low_pays_above ? "above" : "below", to_text_bits(*at.low),
      certain_here && !among ? fmt::format(", and at this cluster's {}", to_text_bits(own)) : "");
}

// Names the limit beyond which a faster NIC does not speed up the plain optimizer.
std::string holds_back(const BreakEven& at, const Cluster& cluster) {
  if (at.streams)
    return fmt::format("beyond {} NCCL's TCP streams limit the plain optimizer (nccl.connections).",
                       to_text_bits(*at.streams));
  if (!at.gpu_way) return "another part of the node limits the plain optimizer.";
  const bool pcie = cluster.gpu_peers == GpuPeers::pcie;
  return fmt::format("beyond {} node.{} ({}) limits the plain optimizer.",
                     to_text_bits(*at.gpu_way), pcie ? "gpu_link" : "gpu_nic",
                     name_of((pcie ? cluster.gpu_link : cluster.gpu_nic).provenance.kind));
}

// Describes a speed-up that is on the same side of 1 at every NIC bandwidth.
std::string pays_everywhere_or_nowhere(const BreakEven& at, const Answer& answer) {
  if (!at.pays_at_any_bandwidth) {
    const bool certain = !at.high && !at.high_pays_at_any;
    return fmt::format("It {} at no NIC bandwidth from 100 Mbit/s to 10 Tbit/s{}.",
                       certain ? "pays" : "is expected to pay",
                       certain ? "" : "; at some of them this is not certain");
  }
  const bool certain = !at.low && at.low_pays_at_any;
  const std::string why = holds_back(at, *answer.scenario.training.cluster);
  if (answer.verdict() == Verdict::hardly)
    return "It is no slower at any NIC bandwidth, and makes no difference at this one: " + why;
  if (certain) return "It pays at any NIC bandwidth: " + why;
  return fmt::format("It is expected to pay at any NIC bandwidth, {}: {}",
                     where_certain(at, answer), why);
}

}  // namespace

std::string break_even_sentence(const Answer& answer) {
  const auto& training = answer.scenario.training;
  if (training.nodes() == 1) return "One node: nothing is sent over a NIC.";
  const Sourced<Bandwidth>& nic = training.cluster->nic_bandwidth;
  const BreakEven& at = *answer.break_even;
  if (at.at && answer.verdict() == Verdict::hardly)
    return fmt::format(
        "Break-even is at a NIC bandwidth of {} ({} to {}); this cluster has {} ({}), where it "
        "makes no difference.",
        to_text_bits(*at.at), at.low ? to_text_bits(*at.low) : "below 100 Mbit/s",
        at.high ? to_text_bits(*at.high) : "above 10 Tbit/s", to_text_bits(nic.value),
        name_of(nic.provenance.kind));
  if (at.at)
    return fmt::format("It {} above a NIC bandwidth of {} ({} to {}); this cluster has {} ({}).",
                       at.pays_above ? "pays only" : "does not pay", to_text_bits(*at.at),
                       at.low ? to_text_bits(*at.low) : "below 100 Mbit/s",
                       at.high ? to_text_bits(*at.high) : "above 10 Tbit/s",
                       to_text_bits(nic.value), name_of(nic.provenance.kind));
  return pays_everywhere_or_nowhere(at, answer);
}

}  // namespace lambcast
