#include "models/training/plan/overlap.h"

namespace lambcast {

const std::vector<std::string>& overlap_names() {
  static const std::vector<std::string> names{"none", "ddp", "zero"};
  return names;
}

std::string_view name_of(Overlap overlap) {
  return overlap_names()[static_cast<std::size_t>(overlap)];
}

}  // namespace lambcast
