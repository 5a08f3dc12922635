// Fuzzes descriptions of models: every accepted model has parameters and FLOPs.
#include "models/shape/load.h"
#include "sim/base/fuzz_target.h"

FUZZ_TARGET(model, text) {
  using namespace lambcast;
  const ModelShape model = load_model(Table::parse(text, "model.toml"), "model.toml", {});
  if (parameters(model) < 1 || !(training_flops(model, model.default_seq_len).value() > 0))
    throw std::logic_error("a model without parameters or work");
}
