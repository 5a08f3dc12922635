#include "sim/collectives/symmetry.h"

#include <cstddef>

namespace lambcast {

const std::vector<std::string>& symmetry_names() {
  static const std::vector<std::string> names{"auto", "off"};
  return names;
}

std::string_view name_of(Symmetry symmetry) {
  return symmetry_names()[static_cast<std::size_t>(symmetry)];
}

}  // namespace lambcast
