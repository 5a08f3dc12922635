// Place of a rank of a measurement, and its message to the other processes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lambcast::validate {

struct RankPlace {
  std::string host;
  int device = -1;  // -1 on a host without a GPU
  std::string device_name;
};

// Formats the places, one per line: "host TAB device TAB name of the GPU".
std::string place_lines(const std::vector<RankPlace>& places);
// Throws Error (failure) for a message that no process of this version sends.
std::vector<RankPlace> places_in(std::string_view lines);

// Throws the Error for a message of another process that is not a `what`.
[[noreturn]] void fail_gibberish(std::string_view what);

}  // namespace lambcast::validate
