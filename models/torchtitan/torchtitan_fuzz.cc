// Fuzzes job files of torchtitan.
#include "models/torchtitan/config.h"
#include "sim/base/fuzz_target.h"

FUZZ_TARGET(torchtitan, text) { lambcast::torchtitan::decode(text, "job.toml"); }
