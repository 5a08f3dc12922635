// Shortest routes over a topology. Searches are kept and reused.
//
// Only buses and fabric switches forward, so a route is a step from its source to a switch, steps
// between switches, and a last step. Boost.Graph's breadth-first search counts the hops from every
// switch to a target, over the switches alone and only as far as needed; the counts are kept.
// Endpoints, the majority of vertices, cost nothing, and all routes to endpoints of a switch share
// its counts.
//
// Used by one thread at a time: threads that share a router lock in_use(). The topology may be
// shared.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "sim/network/fair_share.h"
#include "sim/network/topology.h"

namespace lambcast {

class Router {
 public:
  // `topology` must outlive the router and must not change.
  explicit Router(const Topology& topology);
  ~Router();

  // Appends the links of a shortest path (fewest hops) from `from` to `to`. Of equal next hops, in
  // the order their links were added, the one at position `salt` modulo their number is chosen, as
  // in static routing (d-mod-k). Throws InternalError if no path exists.
  void append_route(VertexId from, VertexId to, std::uint32_t salt, std::vector<LinkId>& out);

  std::mutex& in_use() { return in_use_; }
  // Fair shares over the same links, used under the lock in_use(): link loads take memory only
  // once.
  FairShares& shares() { return shares_; }

 private:
  class Tables;
  std::unique_ptr<Tables> tables_;
  std::mutex in_use_;
  FairShares shares_;
};

}  // namespace lambcast
