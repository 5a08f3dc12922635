// The forms of one cluster on which collectives are laid out, and the schedules laid out so far.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "sim/collectives/lower.h"
#include "sim/network/machine.h"
#include "sim/network/router.h"

namespace lambcast {

// Cache of schedules that are laid out, shared by machines with the same wiring. A search for the
// break-even bandwidth of a run prices each schedule at many rates.
class LaidOuts {
 public:
  // Key of a schedule: number of the wiring, algorithm, operation, group, its place if it shares
  // the machine with other groups, number of nodes of the cluster, choices of the transport, and
  // bytes.
  using Key = std::tuple<int, std::string, Op, ProcessGroup, std::optional<Place>, int, Endpoint,
                         bool, NodeCaps, double>;
  // Returns the schedule of a key, or null.
  std::shared_ptr<const LaidOut> find(const Key& key) const;
  // Returns a schedule whose key differs only in the bytes and which has bytes to send, or null.
  std::shared_ptr<const LaidOut> of_other_size(Key key) const;
  void keep(const Key& key, std::shared_ptr<const LaidOut> laid);

 private:
  std::map<Key, std::shared_ptr<const LaidOut>> known_;
  std::size_t kept_ = 0;  // number of sends and runs of flows, over all schedules
};

// Folded and full forms of one cluster (see machine.h), built when first needed. The full form
// grows with the number of nodes. Threads may share the machines, but not this object.
class Machines {
 public:
  class Wired {
   public:
    std::shared_ptr<const Machine> machine;
    const std::shared_ptr<Router>& router();

   private:
    std::shared_ptr<Router> router_;  // created at first use
  };

  Machines() = default;
  // `nodes_alike` nodes form a part that can represent all parts; zero: there is no folded form.
  Machines(const NodeSpec& node, int nodes, Fabric fabric, int nodes_alike);

  int nodes_alike() const { return nodes_alike_; }
  int nodes() const { return nodes_; }
  const NodeSpec& node() const { return node_; }
  // Returns the folded form with `parts` parts written.
  Wired& folded(int parts);
  Wired& full();
  // Returns a full machine that is only as large as the group's span, if nodes are alike: further
  // nodes do not affect the group's routes.
  Wired& around(const ProcessGroup& group);
  // Returns machines with the same nodes, at least `nodes` of them.
  Machines reaching(int nodes) const;

  // Returns the cache of schedules; null if there is none.
  LaidOuts* laid_outs() const { return laid_outs_.get(); }
  int wiring() const { return wiring_; }
  // Shares a cache of schedules with other machines. `wiring` is a number that is equal for
  // machines that differ only in rates.
  void keep(std::shared_ptr<LaidOuts> laid_outs, int wiring) {
    laid_outs_ = std::move(laid_outs);
    wiring_ = wiring;
  }

 private:
  Wired& unfolded(int nodes);

  NodeSpec node_;
  int nodes_ = 1;
  Fabric fabric_;
  int nodes_alike_ = 0;
  std::map<int, Wired> folded_;    // indexed by number of parts
  std::map<int, Wired> unfolded_;  // indexed by number of nodes
  std::shared_ptr<LaidOuts> laid_outs_;
  int wiring_ = 0;
};

}  // namespace lambcast
