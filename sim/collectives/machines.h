// The forms of one cluster that collectives are laid out on, and the schedules laid out before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "sim/collectives/lower.h"
#include "sim/network/machine.h"
#include "sim/network/router.h"

namespace lambcast {

// Schedules that are laid out, for machines with the same wiring. A search for the bandwidth at
// which a run breaks even prices each schedule at many rates.
class LaidOuts {
 public:
  // Number of the wiring, algorithm, operation, group, nodes of the cluster, choices of the
  // transport, and bytes.
  using Key = std::tuple<int, std::string, Op, ProcessGroup, int, Endpoint, bool, NodeCaps, double>;
  // Returns the schedule of a key, or null.
  std::shared_ptr<const LaidOut> find(const Key& key) const;
  // Returns one that differs in its bytes alone and has some, or null.
  std::shared_ptr<const LaidOut> of_other_size(Key key) const;
  void keep(const Key& key, std::shared_ptr<const LaidOut> laid);

 private:
  std::map<Key, std::shared_ptr<const LaidOut>> known_;
  std::size_t kept_ = 0;  // sends and runs of flows, of all
};

// Two forms of the same cluster (see machine.h), each built when first needed; the full form grows
// with the nodes. Threads may share the machines, but not this object.
class Machines {
 public:
  class Wired {
   public:
    std::shared_ptr<const Machine> machine;
    const std::shared_ptr<Router>& router();

   private:
    std::shared_ptr<Router> router_;  // created when first used
  };

  Machines() = default;
  // `nodes_alike` stand for all; zero: none do, and there is no folded form.
  Machines(const NodeSpec& node, int nodes, Fabric fabric, int nodes_alike);

  int nodes_alike() const { return nodes_alike_; }
  int nodes() const { return nodes_; }
  const NodeSpec& node() const { return node_; }
  // With `parts` parts written.
  Wired& folded(int parts);
  Wired& full();
  // As far as a group reaches where nodes are alike: what lies beyond bears on none of its routes.
  Wired& around(const ProcessGroup& group);
  // The same nodes, at least `nodes` of them.
  Machines reaching(int nodes) const;

  // Null: none are kept.
  LaidOuts* laid_outs() const { return laid_outs_.get(); }
  int wiring() const { return wiring_; }
  // Keeps schedules with those of other machines. `wiring` is a number that machines share if they
  // differ in rates alone.
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
  std::map<int, Wired> folded_;    // by parts
  std::map<int, Wired> unfolded_;  // by nodes
  std::shared_ptr<LaidOuts> laid_outs_;
  int wiring_ = 0;
};

}  // namespace lambcast
