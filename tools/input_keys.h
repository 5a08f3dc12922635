// The numbers of keys of the files that lambcast reads, by their effect on a forecast, from the
// tables of the readers.
#pragma once

#include <string>

namespace lambcast {

// Returns, for each format, how many keys are applied, without cost (by reason), and named.
std::string input_keys_summary();

}  // namespace lambcast
