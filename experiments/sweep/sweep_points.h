// The points of a sweep by their number. They are never all in memory: ten million points are a few
// lists of values.
#pragma once

#include <cstddef>
#include <iterator>
#include <vector>

#include "experiments/scenario/scan.h"
#include "experiments/scenario/scenario.h"

namespace lambcast {

// All combinations of some axes; the last axis changes fastest.
struct PointBlock {
  WhatIf fixed;  // keys shared by all points
  std::vector<Axis> axes;

  std::size_t size() const;
  // Returns the values of a key in this block: its axis, the fixed value, or nothing.
  std::vector<std::string> values(const std::string& key) const;
  WhatIf point(std::size_t i) const;
};

// Several blocks, one after another.
class SweepPoints {
 public:
  // Throws Error (usage) if there are more than ten million points.
  void add(PointBlock block);

  std::size_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  WhatIf operator[](std::size_t i) const;
  const std::vector<PointBlock>& blocks() const { return blocks_; }

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = WhatIf;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = WhatIf;

    Iterator(const SweepPoints* points, std::size_t i) : points_(points), i_(i) {}
    WhatIf operator*() const { return (*points_)[i_]; }
    Iterator& operator++() {
      ++i_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return i_ == other.i_; }

   private:
    const SweepPoints* points_;
    std::size_t i_;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

 private:
  std::vector<PointBlock> blocks_;
  std::vector<std::size_t> ends_;  // end of each block, as the number of the next point
};

// Returns the keys in which the points differ, by name, with their values in the order of the
// points. Points without a key add no value to it.
std::vector<Axis> axes_of(const SweepPoints& points);

// Returns the values of these keys, with "-" for a key that the point lacks.
std::vector<std::string> values_of(const WhatIf& point, const std::vector<Axis>& axes);
// Returns the keys with their values: "global_batch=65536, gpus=32".
std::string point_name(const WhatIf& point, const std::vector<Axis>& axes);

}  // namespace lambcast
