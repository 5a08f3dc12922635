// A results folder as a recipe. manifest.json holds the sweep file, the values of the flags, and
// the hashes of all files read. So the same rows can be computed again, or the changed inputs can
// be listed.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/sweep/sweep_plan.h"

namespace lambcast {

struct Recorded {
  std::string sweep;                          // text of the sweep file
  std::vector<Axis> flags;                    // axes of --scan and --list
  std::string command;                        // command line of the recorded sweep
  std::map<std::string, std::string> inputs;  // hashes of the files read
  std::string version, commit;
  bool complete = false;
};

// Reads the manifest. Throws Error (usage) for a folder without a manifest that records a sweep.
Recorded read_recorded(const std::filesystem::path& folder);

// Returns one sentence for each input that has changed.
std::vector<std::string> changed_inputs(const Recorded& recorded,
                                        const std::map<std::string, std::string>& now);

}  // namespace lambcast
