// The costs that a forecast depends on. price() notes every number when it reads it (price.h), so
// that the list is complete and contains no unused cost.
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
  double share = 1;  // share of the time of all operations that depends on this cost
};

// Costs read while the operations of a step are priced: each cost once, in the order of first use.
class CostSources {
 public:
  void read(std::string_view cost, const Provenance& from);
  // Reads a cost that determines only `part` of the operation's time.
  void read_for(Duration part, std::string_view cost, const Provenance& from);
  // Ends an operation of length `time`, which depends on the costs read since the last one.
  void spend(Duration time);
  // Records `times` calls of a collective near a switching point of NCCL's rule.
  void tips(const TippingCollective& collective, double times);

 private:
  friend class RunSources;
  struct Entry {
    std::string cost;
    Provenance provenance;
    double time_s = 0;
    bool is_read = false;  // by the current operation
  };
  Entry& entry(std::string_view cost, const Provenance& from);
  std::vector<Entry> entries_;
  std::size_t at_ = 0;  // entry that was read last
  double time_s_ = 0;
  std::optional<TippingCollective> tipping_;
  double moved_s_ =
      0;  // the largest change of time near a switching point, over all calls of `tipping_`
};

// Sources of the steps of a run. The records of its steps are shared instead of copied: a sweep
// needs only the weakest kind.
class RunSources {
 public:
  RunSources() = default;
  explicit RunSources(CostSources of_step);  // a run of a single step
  // Adds `steps` steps with the same sources; `of_step` is not null.
  void add(std::shared_ptr<const CostSources> of_step, double steps);

  // Returns each cost once, in the order of its first use.
  std::vector<CostSource> shares() const;
  // Returns the weakest kind among the costs that affect at least a hundredth of the time.
  Kind weakest() const;
  // Returns the collective whose alternative changes the run's time most, if that change is at
  // least a hundredth of the time.
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
