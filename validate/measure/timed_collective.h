// One collective at one size, between the backends (MPI, NCCL) and the loop that times them.
#pragma once

#include <cstdint>

namespace lambcast::validate {

// Whether the input has a buffer of its own or lies where the result goes, as in the right half of
// the tables of nccl-tests.
enum class Placement { out_of_place, in_place };

class TimedCollective {
 public:
  virtual ~TimedCollective() = default;
  // Inputs as in pattern.h; outputs hold a value that no right result has.
  virtual void fill() = 0;
  virtual void run() = 0;
  // Elements of this process that differ from the exact result of one run().
  virtual std::uint64_t count_wrong() const = 0;
};

}  // namespace lambcast::validate
