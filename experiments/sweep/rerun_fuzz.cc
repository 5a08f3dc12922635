// Reads the manifest of a results folder as `rerun` does, and the sweep in it.
#include "experiments/sweep/rerun.h"

#include "sim/base/fuzz_target.h"
#include "sim/base/temporary_folder.h"

FUZZ_TARGET(rerun, text) {
  using namespace lambcast;
  const TemporaryFolder folder;
  folder.file("manifest.json", std::string(text));
  const Recorded recorded = read_recorded(folder.path());
  changed_inputs(recorded, {});
  plan_sweep(recorded.sweep, "manifest.json", recorded.flags);
}
