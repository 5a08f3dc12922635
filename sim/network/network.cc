#include "sim/network/network.h"

namespace lambcast {

void LinkLists::clear() {
  links.clear();
  first.assign(1, 0);
}

std::uint32_t LinkLists::add(std::span<const LinkId> list) {
  links.insert(links.end(), list.begin(), list.end());
  end_list();
  return static_cast<std::uint32_t>(size() - 1);
}

void Paths::append(std::size_t flow, std::vector<LinkId>& links) const {
  for (const std::uint32_t stretch : path[flow]) {
    const std::span<const LinkId> of = stretches->of(stretch);
    links.insert(links.end(), of.begin(), of.end());
  }
}

std::vector<LinkId> Paths::of(std::size_t flow) const {
  std::vector<LinkId> links;
  append(flow, links);
  return links;
}

void Paths::write_out(LinkLists& lists) const {
  lists.clear();
  for (std::size_t flow = 0; flow < size(); ++flow) {
    append(flow, lists.links);
    lists.end_list();
  }
}

FlowSet::FlowSet(const std::vector<std::vector<LinkId>>& on, std::vector<Flow> of)
    : flows(std::move(of)) {
  LinkLists stretches;
  stretches.add({});  // Paths::no_links
  Paths all;
  for (const std::vector<LinkId>& path : on)
    all.path.push_back({stretches.add(path), Paths::no_links, Paths::no_links});
  all.stretches = std::make_shared<const LinkLists>(std::move(stretches));
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
