// Groups the sends of a set that are alike.
//
//   run        consecutive flows of a set, in the order of SendRuns
//   class      sends of the same bytes over links of the same roles and loads (FlowLoads). They
//              take equally long under every protocol and on all machines with the same wiring. A
//              set is priced by its classes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "sim/collectives/routes.h"
#include "sim/collectives/schedule.h"
#include "sim/network/alike.h"

namespace lambcast {

// Whether a protocol caps the rate out of a node, so that sends also differ by the node's traffic.
enum class NodeCaps { none, some };

class SendRuns {
 public:
  explicit SendRuns(const Placement& group);

  // `count` flows of one send, all within their node or all leaving it.
  struct Run {
    const Send* send;
    std::size_t at;  // index of the first of these flows
    bool crosses;
    double share;  // part of all bytes that leave its first node, if NodeCaps::some; else 0
    std::uint32_t count;
  };
  // Calls take(run) for all flows of a set, sibling by sibling.
  template <typename Take>
  void each(const std::vector<Send>& sends, std::size_t flows, NodeCaps caps,
            const Take& take) const {
    const std::vector<Bytes> leaving = leaving_each_node(sends, caps);
    for (std::size_t at = 0; at < flows;)
      for (const Send& send : sends)
        for (int done = 0; done < send.count;) {
          const bool over_network = crosses(send, done);
          const int alike = leaving.empty() ? alike_from(send, done) : 1;
          const Bytes from_node =
              leaving.empty() ? Bytes()
                              : leaving[static_cast<std::size_t>(node_of(send.from + done))];
          const double share = over_network && from_node.value() > 0 ? send.bytes / from_node : 0;
          const auto count = static_cast<std::uint32_t>(alike);
          take(Run{&send, at, over_network, share, count});
          at += count;
          done += alike;
        }
  }

 private:
  int alike_from(const Send& send, int i) const;
  bool crosses(const Send& send, int i) const {
    return node_of(send.from + i) != node_of(send.to + i);
  }
  int node_of(int rank) const {
    return nodes_.empty() ? group_.node_of(rank) : nodes_[static_cast<std::size_t>(rank)];
  }
  // Returns whether all sends that leave the rank's node are stored.
  bool is_written(int rank) const { return !group_.folded || node_of(rank) < group_.written; }
  std::vector<Bytes> leaving_each_node(const std::vector<Send>& sends, NodeCaps caps) const;

  const Placement& group_;
  std::vector<int> nodes_;  // indexed by rank, if all are stored
};

// A class is valid for all sizes of a schedule; its bytes are those of `send`.
struct SendClass {
  std::uint32_t send;  // the first send of the class, as an index into the set
  std::uint32_t weight;
  bool crosses;
  bool first_sibling;
  double share;         // see SendRuns::Run
  std::uint32_t loads;  // index into FlowLoads::classes of its set
};

// Calls take(class, count) for all flows of a set in their order, with `count` consecutive flows of
// a class.
template <typename Take>
void each_class(const std::vector<Send>& sends, const Paths& paths, const SendRuns& runs,
                NodeCaps caps, const Take& take) {
  const std::size_t of_one = sends_in(sends);
  auto loads = paths.loads().runs.begin();
  std::uint32_t passed = 0;  // flows of the current run of loads
  runs.each(sends, paths.size(), caps, [&](const SendRuns::Run& run) {
    for (std::uint32_t left = run.count; left > 0;) {
      const std::uint32_t both = std::min(left, loads->flows - passed);
      const auto send = static_cast<std::uint32_t>(run.send - sends.data());
      take(SendClass{send, run.send->weight, run.crosses, run.at < of_one, run.share, loads->of},
           both);
      left -= both;
      passed += both;
      if (passed < loads->flows) continue;
      ++loads;
      passed = 0;
    }
  });
}

// Returns the classes of each set of a schedule, in the order of their first sends.
using SendClasses = std::vector<std::vector<SendClass>>;
SendClasses send_classes(const CommSchedule& schedule, const Routes& routes,
                         const Placement& placement, NodeCaps caps);

// Sends of a set that has the network to itself, with equal sends merged. Links of a role have one
// capacity on all machines with the same wiring, so a set is folded once for all of them.
struct FoldedSends {
  struct Class {
    SendClass of;
    std::uint32_t count;
  };
  std::vector<Class> classes;
  LinkLists paths;  // path of each class, as a list of trunks
  std::vector<Alike::Trunk> trunks;
};

// Returns nothing if a route crosses two links of one class.
std::optional<FoldedSends> fold_sends(const std::vector<Send>& sends, const Paths& paths,
                                      const Placement& placement, NodeCaps caps,
                                      const Topology& topology);

}  // namespace lambcast
