// Option: simulate equal ranks once, or every rank and round separately, which is slower and gives
// the same result.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lambcast {

enum class Symmetry { folded, off };
const std::vector<std::string>& symmetry_names();
std::string_view name_of(Symmetry symmetry);

}  // namespace lambcast
