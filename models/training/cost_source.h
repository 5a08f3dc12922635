// The costs that a forecast rests on. price() notes every number as it reads it (price.h), so that
// no cost can be forgotten and none is listed that nothing rests on.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/training/algorithm_tip.h"
#include "sim/base/provenance.h"
#include "sim/base/units.h"

namespace lambcast {

// One cost that enters the forecast and where its number comes from.
struct CostSource {
  std::string cost;
  Provenance provenance;
  double share = 1;  // of the time of all operations, that of those whose prices read it
};

// What prices read, operation after operation: each cost once, in the order of its first use.
class CostSources {
 public:
  void read(std::string_view cost, const Provenance& from);
  // What decides a part of the operation's time alone.
  void read_for(Duration part, std::string_view cost, const Provenance& from);
  // An operation of that time rests on what was read since the last one.
  void spend(Duration time);
  // So many calls of a collective near a tip of NCCL's rule.
  void tips(const TippingCollective& collective, double times);
  // So many steps alike.
  void add(const CostSources& of_step, double steps);

  std::vector<CostSource> shares() const;
  // Of all near a tip the one that it moves furthest, where that is a hundredth of the time.
  std::optional<TippingCollective> tipping() const;

 private:
  struct Entry {
    std::string cost;
    Provenance provenance;
    double time_s = 0;
    bool is_read = false;  // by the operation under way
  };
  Entry& entry(std::string_view cost, const Provenance& from);
  std::vector<Entry> entries_;
  double time_s_ = 0;
  std::optional<TippingCollective> tipping_;
  double moved_s_ = 0;  // by it, in all its calls
};

// The weakest kind among the sources that matter, those of at least a hundredth of the time: what
// they rest on together.
Kind weakest(const std::vector<CostSource>& sources);

}  // namespace lambcast
