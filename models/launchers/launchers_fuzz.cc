// Fuzzes YAML of launchers: the resulting DeepSpeed JSON must be readable.
#include "models/deepspeed/config.h"
#include "models/launchers/launcher_file.h"
#include "sim/base/fuzz_target.h"

FUZZ_TARGET(launchers, text) {
  using namespace lambcast;
  const launchers::LauncherFile file = launchers::decode(text, "fuzz.yaml");
  if (!file.config.empty()) deepspeed::parse_config(file.config, "fuzz.yaml as DeepSpeed JSON");
}
