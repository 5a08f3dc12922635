#include "sim/network/network.h"

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

Paths::Paths(std::size_t flows, Find find, std::vector<Share> shares)
    : flows_(flows), find_(std::move(find)), shares_(std::move(shares)) {}

Paths::Paths(LinkLists links, std::vector<Share> shares)
    : flows_(links.size()), shares_(std::move(shares)), links_(std::move(links)) {}

const LinkLists& Paths::links() const {
  if (links_.size() < flows_) find_(links_);
  return links_;
}

Paths Paths::with(std::vector<Share> shares) const {
  Paths paths = *this;
  paths.shares_ = std::move(shares);
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
