// Shortest routes over a topology, found once.
//
// Only buses and fabric switches forward, so a route is a step from its source to a switch, some
// from switch to switch, and a last one. Hops from every switch to a target are counted by
// Boost.Graph's breadth-first search over the switches alone, only as far as needed, and kept.
// Endpoints, which are most of a machine, cost nothing, and all routes to the endpoints of a switch
// share its count.
//
// Used by one thread at a time: threads that share it lock in_use(). The topology may be shared.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "sim/network/fair_share.h"
#include "sim/network/topology.h"

namespace lambcast {

class Router {
 public:
  // Routes over the topology in its present form, which must outlive the router.
  explicit Router(const Topology& topology);
  ~Router();

  // Appends the links of a shortest path (fewest hops) from `from` to `to`. Among equal next hops,
  // in the order their links were added, the one at position `salt` modulo their number is taken,
  // which spreads flows as static routing (d-mod-k) does. Throws InternalError when no path exists.
  void append_route(VertexId from, VertexId to, std::uint32_t salt, std::vector<LinkId>& out);

  std::mutex& in_use() { return in_use_; }
  // Fair shares on the same links, under the lock in_use(): one memory of the loads of all links.
  FairShares& shares() { return shares_; }

 private:
  class Tables;
  std::unique_ptr<Tables> tables_;
  std::mutex in_use_;
  FairShares shares_;
};

}  // namespace lambcast
