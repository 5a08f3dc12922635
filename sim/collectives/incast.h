// Waits of exchanges over TCP for a switch whose queue is full (incast).
//
// If all ranks send to all others at once, k flows meet at a port of the switch. Bytes beyond its
// queue of Q bytes are lost. With g of n ranks on each of three or more nodes, c connections per
// pair of peers and one port per NIC,
//
//   k = g (n - g) c / NICs per node
//
// A sender keeps at least two packets in flight (Linux net/ipv4/tcp_cong.c, tcp_reno_ssthresh). A
// node sends no faster than it receives, so half of them wait in its own NIC and half, k packets of
// P bytes on average, at the port. They come in pairs, since receivers acknowledge every other
// packet (RFC 5681, section 4.2), and flows are independent. Their number is therefore normal with
// variance 2 k (Appenzeller, Keslassy and McKeown, "Sizing Router Buffers", SIGCOMM 2004, argue the
// same for windows). If they exceed the queue, some message loses its last packet. No later packet
// then reports the loss, so the sender waits for the retransmission timer, R or more (Phanishayee
// et al., "Measurement and Analysis of TCP Throughput Collapse", FAST 2008). On average over many
// exchanges
//
//   time += R share,  share = erfc((Q / P - k) / (2 sqrt(k))) / 2
//
// A single exchange waits R or not at all, and lies far from this average. Messages so short that
// they need no acknowledgement do not collide: up to two packets if all ranks post in the same
// order, up to the initial window (10 packets, RFC 6928) if each rank begins with another peer.
//
// No constant is fitted. Comparison with real TCP on an emulated Ethernet (Open MPI, 3 to 16 hosts,
// 50 and 100 Mbit/s, messages of 48 and 192 KiB; validate/measured/incast.csv): for k > Q / P, half
// of the forecast means are within a factor of 1.2 of the measured ones, 89 % within 1.5, all
// within 1.8. For larger queues, up to about four packets per flow, stalls are rarer, but on few
// hosts more frequent than forecast: half within a factor of 1.25, the worst too low by a factor of
// 4. Shorter messages stalled between never and four times as often. Not measured: several ranks
// per node, several connections or NICs, NCCL, and rates above 100 Mbit/s.
#pragma once

#include "sim/base/units.h"
#include "sim/collectives/schedule.h"

namespace lambcast {

struct PortQueue {
  Bytes depth;       // Q
  Duration rto_min;  // R
};

// P: 1500 bytes and an Ethernet header. 1448 bytes are payload: IP and TCP headers with time stamps
// take 52.
inline constexpr Bytes full_packet{1514};
inline constexpr Bytes packet_payload{1448};

// Returns k. It is zero for fewer than three nodes, since one sender is as slow as the port.
double flows_at_port(const Placement& placement, int connections);

// Returns the share of exchanges that wait, for k above zero.
double stalled_share(Bytes port_queue, double flows);

// Returns the average wait of one repetition of a round.
Duration incast_wait(const Round& round, const Placement& placement, const PortQueue& queue,
                     int connections);

}  // namespace lambcast
