#include "sim/network/network.h"

#include <algorithm>
#include <limits>

namespace lambcast {

void LinkLists::clear() {
  links.clear();
  first.assign(1, 0);
}

void LinkLists::reserve(std::size_t lists, std::size_t links_each) {
  first.reserve(lists + 1);
  links.reserve(lists * links_each);
}

void LinkLists::add(std::span<const LinkId> list) {
  links.insert(links.end(), list.begin(), list.end());
  end_list();
}

Share FlowLoads::Class::share(const Topology& topology) const {
  if (links.empty()) return {Bandwidth(), Bandwidth(), 1};
  double least = std::numeric_limits<double>::infinity(), narrowest = least;
  for (const OnLink& on : links) {
    const double capacity = topology.capacity(on.link).value();
    narrowest = std::min(narrowest, capacity);
    least = std::min(least, capacity / on.load);
  }
  return {Bandwidth(least * weight), Bandwidth(narrowest), 1};
}

std::vector<Share> FlowLoads::shares(const Topology& topology) const {
  std::vector<Share> of_classes, shares;
  for (const Class& of : classes) of_classes.push_back(of.share(topology));
  for (const Run& run : runs) {
    const Share& share = of_classes[run.of];
    if (shares.empty() || shares.back().each != share.each || shares.back().alone != share.alone)
      shares.push_back({share.each, share.alone, 0});
    shares.back().flows += run.flows;
  }
  return shares;
}

Paths::Paths(std::size_t flows, Find find, FlowLoads loads, const Topology& topology)
    : flows_(flows),
      loads_(std::make_shared<const FlowLoads>(std::move(loads))),
      shares_(loads_->shares(topology)),
      late_(std::make_shared<Late>(std::move(find))) {}

Paths::Paths(LinkLists links, FlowLoads loads, const Topology& topology)
    : flows_(links.size()),
      loads_(std::make_shared<const FlowLoads>(std::move(loads))),
      shares_(loads_->shares(topology)),
      links_(std::move(links)) {}

Paths::Paths(LinkLists links)
    : flows_(links.size()), loads_(std::make_shared<const FlowLoads>()), links_(std::move(links)) {}

const LinkLists& Paths::links() const {
  if (late_ == nullptr) return links_;
  std::call_once(late_->once, [this] {
    LinkLists found;
    late_->find(found);
    late_->links = std::move(found);
  });
  return late_->links;
}

LinkLists Paths::find_links() const {
  LinkLists found;
  if (late_ == nullptr) return links_;
  late_->find(found);
  return found;
}

Paths Paths::on(const Topology& topology) const {
  Paths paths = *this;
  paths.shares_ = loads_->shares(topology);
  return paths;
}

FlowSet::FlowSet(const std::vector<std::vector<LinkId>>& on, std::vector<Flow> of)
    : flows(std::move(of)) {
  LinkLists lists;
  for (const std::vector<LinkId>& links : on) lists.add(links);
  paths = std::make_shared<const Paths>(std::move(lists));
}

const std::vector<std::string>& network_model_names() {
  static const std::vector<std::string> names{"analytic", "flow"};
  return names;
}

std::string_view name_of(NetworkModel model) {
  return network_model_names()[static_cast<std::size_t>(model)];
}

}  // namespace lambcast
