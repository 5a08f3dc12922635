#include "sim/collectives/process_group.h"

#include <algorithm>

namespace lambcast {

int ProcessGroup::ranks_on(int node) const { return std::min(per_node, ranks - node * per_node); }

int ProcessGroup::slots() const { return (siblings + stride - 1) / stride * per_node * stride; }

int ProcessGroup::slot_of(int rank, int sibling) const {
  const int first = sibling / stride * per_node * stride + sibling % stride;
  return first + rank % per_node * stride;
}

}  // namespace lambcast
