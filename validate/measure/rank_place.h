// Place of a rank of a measurement, and its message to the other processes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lambcast::validate {

struct RankPlace {
  std::string host;
  int device = -1;  // -1 on a host without GPU
  std::string device_name;
};

// "host TAB device TAB name of the GPU", a line each.
std::string place_lines(const std::vector<RankPlace>& places);
// Throws Error (failure) for what no process of this version says.
std::vector<RankPlace> places_in(std::string_view lines);

// Throws that error: another process sent what is no `what`.
[[noreturn]] void fail_gibberish(std::string_view what);

}  // namespace lambcast::validate
