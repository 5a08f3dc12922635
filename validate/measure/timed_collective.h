// One collective at one size: the interface between the backends (MPI, NCCL) and the timing loop.
#pragma once

#include <cstdint>

namespace lambcast::validate {

// Whether the input has its own buffer, or is in the result's buffer as in the right half of the
// tables of nccl-tests.
enum class Placement { out_of_place, in_place };

class TimedCollective {
 public:
  virtual ~TimedCollective() = default;
  // Fills the inputs as in pattern.h, and the outputs with a value that no right result has.
  virtual void fill() = 0;
  virtual void run() = 0;
  // Returns the number of elements of this process that differ from the exact result of one run().
  virtual std::uint64_t count_wrong() const = 0;
};

}  // namespace lambcast::validate
