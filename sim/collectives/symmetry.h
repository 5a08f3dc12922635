// Whether ranks that do the same are simulated once, or every rank and round on its own: slower,
// and the same answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lambcast {

enum class Symmetry { folded, off };
const std::vector<std::string>& symmetry_names();
std::string_view name_of(Symmetry symmetry);

}  // namespace lambcast
