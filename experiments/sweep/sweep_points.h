// The points of a sweep by their number, without all of them ever being in memory: ten million
// points are a few lists of values.
#pragma once

#include <cstddef>
#include <iterator>
#include <vector>

#include "experiments/scenario/scan.h"
#include "experiments/scenario/scenario.h"

namespace lambcast {

// Every combination of some axes, the last one fastest.
struct PointBlock {
  WhatIf fixed;  // what its points share
  std::vector<Axis> axes;

  std::size_t size() const;
  // The values of a key here: its axis, the fixed one, or none.
  std::vector<std::string> values(const std::string& key) const;
  WhatIf point(std::size_t i) const;
};

// Blocks one behind the other.
class SweepPoints {
 public:
  // Throws Error (usage) past ten million points.
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
  std::vector<std::size_t> ends_;  // the number behind the last point of each block
};

// The keys in which the points differ, by name, with their values in the order of the points. A key
// that some points lack takes no value there.
std::vector<Axis> axes_of(const SweepPoints& points);

// The values of these keys: "65536, 32"; - for one that it lacks.
std::vector<std::string> values_of(const WhatIf& point, const std::vector<Axis>& axes);
std::string point_name(const WhatIf& point, const std::vector<Axis>& axes);

}  // namespace lambcast
