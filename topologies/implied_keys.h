// Keys of a description that follow from other keys:
//
//   nic.instance                       nic.platform, nic.count, nic.nominal, nic.bandwidth
//   nic.platform                       nccl.connections
//   nccl.plugin, nccl.plugin_release   nccl.protocols, nccl.algorithms, nccl.reported_latency
//
// A key that the description states keeps its value. An override of one of the keys on the left
// replaces what the description states of those on its right, except keys with overrides of their
// own. Sources:
//
//   instances     pages of the clouds; rates of AWS as in karpenter-provider-aws,
//                 pkg/providers/instancetype/zz_generated.bandwidth.go, which also has the rates
//                 that last where AWS says "up to". EFA counts as the NICs of AWS instances that
//                 have it
//   connections   src/transport/net_socket.cc: threads x sockets of a channel over TCP, by the PCI
//                 vendor of the NIC: 2 x 8 on AWS, 4 x 1 on Google Cloud, else one
//   aws-ofi-nccl  src/platform-aws.cpp reports 150 us for p3dn, 75 us for p4d, p4de, p5 and p5e,
//                 35 us for p5en and p6. LL128 is run by the tuner for p5 and p6, which is on by
//                 default from 1.16
//   tcpx, tcpxo   Google's gpudirect-tcpxo/README.md and example configurations. TCPX: ring under
//                 Simple. TCPXO: no NVLS before 1.0.12, Simple alone before 1.0.9, later LL128 too
//   ofi-cxi       Slingshot: NICs hang on the CPU (distance PHB), so LL128 is off
//   gib           RoCE by verbs: NCCL's own rule
//
// With plugin "none" in place of one that NCCL has no transport of its own for (all except gib),
// NCCL falls back to TCP sockets: nic.network and the constants between nodes are then those of
// sockets. The tuner files of TCPXO and gIB are not public and not modelled.
#pragma once

#include <string_view>

#include "sim/base/overrides.h"
#include "sim/base/table.h"
#include "topologies/priors.h"

namespace lambcast {

// Sets the keys that follow from others, in a table at its root, if they are absent. Throws Error
// (usage) for an unknown instance, plugin or release.
void add_implied_keys(Table& root);

// Sets the keys that follow from the overrides, which are already applied to `root`. `described` is
// the description without them.
void replace_implied_keys(const Table& described, const Overrides& overrides, const Priors& priors,
                          Table& root);

// Returns whether nic.instance may have this value.
bool is_instance(std::string_view name);

// Returns whether an override of `key` may change `field` by the rules above.
bool implies(std::string_view key, std::string_view field);

}  // namespace lambcast
