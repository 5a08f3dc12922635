// Fuzzes DeepSpeed configurations, and their evaluation before a forecast.
#include "models/deepspeed/rules.h"
#include "sim/base/fuzz_target.h"

FUZZ_TARGET(hjson, text) {
  using namespace lambcast::deepspeed;
  const DeepSpeedConfig config = parse_config(text, "fuzz.json");
  check_config(config);
  check_run(config, 1000);
  if (config.curriculum) length_phases(*config.curriculum, 1000);
  if (config.elasticity) elastic_batch(*config.elasticity, 8);
  resolve_batch(config.batch, 8);
}
