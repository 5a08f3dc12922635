#include "sim/collectives/machines.h"

#include <limits>

namespace lambcast {
namespace {

// Limit of the cache in sends, runs of flows and flows with links, about 150 MB.
constexpr std::size_t most_kept = std::size_t{3} << 19;

// `with_links` is set if the links of all flows are found and kept, as for a group with a place.
std::size_t size_of(const LaidOut& laid, bool with_links) {
  std::size_t size = 0;
  for (const auto& sends : laid.schedule.send_sets) size += sends.size();
  for (const auto& paths : laid.routes)
    size += paths->loads().runs.size() + (with_links ? paths->size() : 0);
  return size;
}

}  // namespace

std::shared_ptr<const LaidOut> LaidOuts::find(const Key& key) const {
  const auto known = known_.find(key);
  return known == known_.end() ? nullptr : known->second;
}

std::shared_ptr<const LaidOut> LaidOuts::of_other_size(Key key) const {
  double& bytes = std::get<double>(key);
  bytes = std::numeric_limits<double>::min();
  const auto next = known_.lower_bound(key);
  if (next == known_.end()) return nullptr;
  bytes = std::get<double>(next->first);
  return next->first == key ? next->second : nullptr;
}

void LaidOuts::keep(const Key& key, std::shared_ptr<const LaidOut> laid) {
  const std::size_t size = size_of(*laid, std::get<std::optional<Place>>(key).has_value());
  if (size > most_kept) return;
  if (kept_ + size > most_kept) {
    known_.clear();
    kept_ = 0;
  }
  kept_ += size;
  known_.emplace(key, std::move(laid));
}

Machines::Machines(const NodeSpec& node, int nodes, Fabric fabric, int nodes_alike)
    : node_(node), nodes_(nodes), fabric_(std::move(fabric)), nodes_alike_(nodes_alike) {}

Machines::Wired& Machines::folded(int parts) {
  Wired& folded = folded_[parts];
  if (folded.machine == nullptr)
    folded.machine = build_folded_machine(node_, nodes_, nodes_alike_, parts, fabric_);
  return folded;
}

Machines::Wired& Machines::full() { return unfolded(nodes_); }

Machines::Wired& Machines::around(const ProcessGroup& group) {
  if (nodes_alike_ == 0) return full();
  const int parts = (group.node_span() + nodes_alike_ - 1) / nodes_alike_;
  return unfolded(std::min(nodes_, parts * nodes_alike_));
}

Machines Machines::reaching(int nodes) const {
  Machines larger(node_, std::max(nodes_, nodes), fabric_, nodes_alike_);
  larger.keep(laid_outs_, wiring_);
  return larger;
}

Machines::Wired& Machines::unfolded(int nodes) {
  Wired& unfolded = unfolded_[nodes];
  if (unfolded.machine == nullptr) unfolded.machine = build_machine(node_, nodes, fabric_);
  return unfolded;
}

const std::shared_ptr<Router>& Machines::Wired::router() {
  if (router_ == nullptr) router_ = std::make_shared<Router>(machine->topology);
  return router_;
}

}  // namespace lambcast
