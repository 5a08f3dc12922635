// Fuzzes launch scripts.
#include "models/megatron/shell_script.h"
#include "sim/base/fuzz_target.h"

FUZZ_TARGET(shell, text) {
  using namespace lambcast;
  megatron::run_script(text, "script");
  megatron::run_script(text, "script", {{"1", "2"}, {"TP", "8"}});
}
