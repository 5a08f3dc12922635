// Fuzzes config.json files of Hugging Face, and the resulting description.
#include "models/huggingface/config.h"
#include "models/shape/load.h"
#include "sim/base/fuzz_target.h"

FUZZ_TARGET(huggingface, text) {
  using namespace lambcast;
  const std::string description = huggingface::description_of(text, "config.json");
  load_model(Table::parse(description, "config.json as a description"), "config.json", {});
}
