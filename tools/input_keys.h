// The keys of the files that lambcast reads, by their effect on a forecast, from the tables of the
// readers and from what the readers look up.
#pragma once

#include <string>

namespace lambcast {

// Returns, for each format, how many keys are applied, without cost, named and refused.
std::string input_keys_summary();

// Returns the names of these keys, with the keys without cost grouped by reason. A '*' stands for
// all keys with that beginning.
std::string input_keys_list();

}  // namespace lambcast
