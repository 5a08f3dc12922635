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
    : flows_(flows), shares_(std::move(shares)), late_(std::make_shared<Late>(std::move(find))) {}

Paths::Paths(LinkLists links, std::vector<Share> shares)
    : flows_(links.size()), shares_(std::move(shares)), links_(std::move(links)) {}

const LinkLists& Paths::links() const {
  if (late_ == nullptr) return links_;
  std::call_once(late_->once, [this] {
    LinkLists found;
    late_->find(found);
    late_->links = std::move(found);
  });
  return late_->links;
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
