// Parses logs of norms and losses.
#include "experiments/phases/freeze_log.h"
#include "sim/base/fuzz_target.h"

FUZZ_TARGET(freeze_log, text) {
  using namespace lambcast;
  choose_freeze_step(parse_freeze_log(text, "log", {}, false), {.beta2 = 0.5});
}
