// The costs that a forecast rests on. price() notes every number as it reads it (price.h), so that
// no cost can be forgotten and none is listed that nothing rests on.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/training/price/algorithm_tip.h"
#include "sim/base/provenance.h"
#include "sim/base/units.h"

namespace lambcast {

// One cost that enters the forecast and where its number comes from.
struct CostSource {
  std::string cost;
  Provenance provenance;
  double share = 1;  // of the time of all operations, that of those whose prices read it
};

// Costs read by the prices of a step, operation after operation: each cost once, in the order of
// its first use.
class CostSources {
 public:
  void read(std::string_view cost, const Provenance& from);
  // Reads a cost that determines only `part` of the operation's time.
  void read_for(Duration part, std::string_view cost, const Provenance& from);
  // An operation of that time rests on what was read since the last one.
  void spend(Duration time);
  // Records `times` calls of a collective near a switching point of NCCL's rule.
  void tips(const TippingCollective& collective, double times);

 private:
  friend class RunSources;
  struct Entry {
    std::string cost;
    Provenance provenance;
    double time_s = 0;
    bool is_read = false;  // by the operation under way
  };
  Entry& entry(std::string_view cost, const Provenance& from);
  std::vector<Entry> entries_;
  std::size_t at_ = 0;  // of the last that was read
  double time_s_ = 0;
  std::optional<TippingCollective> tipping_;
  double moved_s_ = 0;  // by it, in all its calls
};

// Sources of the steps of a run. It shares the records of its steps, so that a sweep, which needs
// only the weakest kind, copies no names.
class RunSources {
 public:
  RunSources() = default;
  explicit RunSources(CostSources of_step);  // of a single one
  // Adds `steps` steps with the same sources; `of_step` is not null.
  void add(std::shared_ptr<const CostSources> of_step, double steps);

  // Returns each cost once, in the order of its first use.
  std::vector<CostSource> shares() const;
  // The weakest kind among those that matter, of at least a hundredth of the time: what they rest
  // on together.
  Kind weakest() const;
  // Returns the collective near a switching point that it changes most, if that is at least a
  // hundredth of the time.
  std::optional<TippingCollective> tipping() const;

 private:
  struct Part {
    std::shared_ptr<const CostSources> of_step;
    double steps;
  };
  struct Spent {
    const CostSources::Entry* of;
    double time_s;
  };
  std::vector<Spent> spent() const;
  double time_s() const;
  std::vector<Part> parts_;
};

}  // namespace lambcast
