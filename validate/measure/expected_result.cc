#include "validate/measure/expected_result.h"

namespace lambcast::validate {

float ExpectedResult::at(int rank, std::uint64_t i) const {
  const std::uint64_t mine = static_cast<std::uint64_t>(rank) * block;
  switch (operation) {
    case Operation::all_reduce:
      return sums[pattern_residue(i)];
    case Operation::reduce_scatter:
      return sums[pattern_residue(mine + i)];
    case Operation::all_gather:
      return pattern_element(type, operation, static_cast<int>(i / block), i % block);
    case Operation::all_to_all:
      return pattern_element(type, operation, static_cast<int>(i / block), mine + i % block);
    case Operation::reduce:
      return rank == root ? sums[pattern_residue(i)] : unset_value(type);
    case Operation::broadcast:
      return pattern_element(type, operation, root, i);
    case Operation::send_recv:
      return pattern_element(type, operation, (rank + ranks - 1) % ranks, i);
    case Operation::ping_pong:
      return rank == 0 || rank == ranks - 1 ? pattern_element(type, operation, 0, i)
                                            : unset_value(type);
    case Operation::compressed_allreduce:
    case Operation::stream:
      break;
  }
  return unset_value(type);
}

}  // namespace lambcast::validate
