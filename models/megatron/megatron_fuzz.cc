// Fuzzes arguments of Megatron-LM, and the resulting description.
#include "models/megatron/arguments.h"
#include "models/shape/load.h"
#include "sim/base/fuzz_target.h"

FUZZ_TARGET(megatron, text) {
  using namespace lambcast;
  const megatron::Arguments arguments = megatron::decode(text, "args");
  if (!arguments.model.empty())
    load_model(Table::parse(arguments.model, "args as a description"), "args", {});
}
