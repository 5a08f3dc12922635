#include "sim/collectives/send_classes.h"

#include <algorithm>
#include <unordered_set>

namespace lambcast {
namespace {

// Returns a colour for the flows of a send: sends with different bytes or classes get different
// colours.
Colour colour_of(const SendClass& of, const std::vector<Send>& sends) {
  const Colour where = Colour{of.loads} << 2 | Colour{of.crosses} << 1 | Colour{of.first_sibling};
  return mixed(mixed(mixed(mixed(0, sends[of.send].bytes.value()), of.share), where),
               Colour{of.weight});
}

std::vector<SendClass> classes_of(const std::vector<Send>& sends, const Paths& paths,
                                  const SendRuns& runs, NodeCaps caps) {
  std::vector<SendClass> classes;
  std::unordered_set<Colour> known;
  Colour last = 0;
  each_class(sends, paths, runs, caps, [&](const SendClass& of, std::uint32_t) {
    const Colour colour = colour_of(of, sends);
    if (colour != last && known.insert(colour).second) classes.push_back(of);
    last = colour;
  });
  return classes;
}

}  // namespace

SendRuns::SendRuns(const Placement& group) : group_(group) {
  if (group.folded) return;
  nodes_.reserve(static_cast<std::size_t>(group.ranks));
  for (int rank = 0; rank < group.ranks; ++rank) nodes_.push_back(group.node_of(rank));
}

int SendRuns::alike_from(const Send& send, int i) const {
  if (std::abs(send.to - send.from) >= group_.per_node) return send.count - i;
  int end = i + 1;
  while (end < send.count && crosses(send, end) == crosses(send, i)) ++end;
  return end - i;
}

std::vector<Bytes> SendRuns::leaving_each_node(const std::vector<Send>& sends,
                                               NodeCaps caps) const {
  if (caps == NodeCaps::none) return {};
  std::vector<Bytes> leaving(static_cast<std::size_t>(group_.nodes()));
  for (const Send& send : sends)
    for (int i = 0; i < send.count; ++i)
      if (crosses(send, i) && is_written(send.from + i))
        leaving[static_cast<std::size_t>(node_of(send.from + i))] += send.bytes;
  return leaving;
}

SendClasses send_classes(const CommSchedule& schedule, const Routes& routes,
                         const Placement& placement, NodeCaps caps) {
  const SendRuns runs(placement);
  SendClasses classes;
  for (std::size_t i = 0; i < routes.size(); ++i)
    classes.push_back(classes_of(schedule.send_sets[i], *routes[i], runs, caps));
  return classes;
}

std::optional<FoldedSends> fold_sends(const std::vector<Send>& sends, const Paths& paths,
                                      const Placement& placement, NodeCaps caps,
                                      const Topology& topology) {
  std::vector<SendClass> of_flows;
  of_flows.reserve(paths.size());
  ColouredFlows coloured;
  coloured.colours.reserve(paths.size());
  each_class(sends, paths, SendRuns(placement), caps, [&](SendClass of, std::uint32_t count) {
    of.first_sibling = true;  // siblings are merged
    of_flows.insert(of_flows.end(), count, of);
    coloured.colours.insert(coloured.colours.end(), count, colour_of(of, sends));
  });
  const LinkLists routes = paths.find_links();
  coloured.routes = &routes;
  auto alike = find_alike({&coloured, 1}, topology.links().size(),
                          [&](LinkId link) { return mixed(0, Colour{topology.role(link)}); });
  if (!alike) return std::nullopt;
  FoldedSends folded{{}, std::move(alike->paths.front()), std::move(alike->trunks)};
  for (const Alike::Flows& flows : alike->flows.front())
    folded.classes.push_back({of_flows[flows.first], flows.count});
  return folded;
}

}  // namespace lambcast
