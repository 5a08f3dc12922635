#include "experiments/sweep/sweep_check.h"

#include <optional>
#include <string>

#include "experiments/scenario/invalid_value.h"

namespace lambcast {
namespace {

// Limit of the points in which the value was not checked because of an earlier error.
constexpr int most_unclear = 64;

// Returns whether another value can make this one valid. A key below a description depends on it
// and on other keys below it; the GPUs of a node depend on the cluster.
bool hangs_on_others(std::string_view key) {
  return key.find('.') != std::string_view::npos || key == "gpus_per_node";
}

// Tries points with one value of one key until one of them accepts it.
class Trial {
 public:
  Trial(const PointBlock& block, const std::string& key, Catalog& catalog)
      : block_(block), key_(key), catalog_(catalog) {}

  // Returns whether no further point needs to be tried.
  bool settled(const WhatIf& point) {
    try {
      resolve(point, catalog_);
      return true;
    } catch (const InvalidValue& error) {
      if (concerns(error)) {
        if (!hangs_on_others(error.key())) throw;
        if (!fault_) fault_ = error;
        return false;
      }
    } catch (const Error&) {
      // The combination is invalid, and its row reports it. Descriptions have been read by then.
      if (key_.find('.') != std::string::npos) return true;
    }
    return ++unclear_ >= most_unclear;
  }
  const std::optional<InvalidValue>& fault() const { return fault_; }

 private:
  // Returns whether the error is about this key, or about a key that no point has.
  bool concerns(const InvalidValue& error) const {
    if (error.key().ends_with('.')) return key_.starts_with(error.key());
    return error.key() == key_ || block_.values(error.key()).empty();
  }

  const PointBlock& block_;
  const std::string& key_;
  Catalog& catalog_;
  std::optional<InvalidValue> fault_;
  int unclear_ = 0;
};

void check_value(const PointBlock& block, const std::string& key, const std::string& value,
                 Catalog& catalog) {
  Trial trial(block, key, catalog);
  WhatIf point = block.point(0);
  point[key] = value;
  if (trial.settled(point)) return;
  for (const auto& [other, values] : block.axes) {
    if (other == key) continue;
    const std::string first = point[other];
    for (const std::string& beside : values) {
      point[other] = beside;
      if (trial.settled(point)) return;
    }
    point[other] = first;
  }
  if (trial.fault()) throw InvalidValue(*trial.fault());
}

}  // namespace

void check_values(const SweepPoints& points, Catalog& catalog) {
  for (const PointBlock& block : points.blocks()) {
    for (const auto& [key, value] : block.fixed) check_value(block, key, value, catalog);
    for (const auto& [key, values] : block.axes)
      for (const std::string& value : values) check_value(block, key, value, catalog);
  }
}

}  // namespace lambcast
