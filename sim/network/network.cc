#include "sim/network/network.h"

namespace lambcast {

void Paths::add(std::span<const LinkId> path) {
  links.insert(links.end(), path.begin(), path.end());
  first.push_back(static_cast<std::uint32_t>(links.size()));
}

FlowSet::FlowSet(const std::vector<std::vector<LinkId>>& on, std::vector<Flow> of)
    : flows(std::move(of)) {
  Paths all;
  for (const std::vector<LinkId>& path : on) all.add(path);
  paths = std::make_shared<const Paths>(std::move(all));
}

const std::vector<std::string>& network_model_names() {
  static const std::vector<std::string> names{"analytic", "flow"};
  return names;
}

std::string_view name_of(NetworkModel model) {
  return network_model_names()[static_cast<std::size_t>(model)];
}

}  // namespace lambcast
