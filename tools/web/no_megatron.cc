// The page reads no launch scripts and no logs with Megatron's arguments, whose parser would make
// it larger than 1.5 MB.
#include "models/megatron/arguments.h"
#include "models/megatron/known_arguments.h"
#include "sim/base/error.h"

namespace lambcast::megatron {

Arguments decode(std::string_view, const std::string& file, const Variables&) {
  fail_input({file, 0, {}}, "has Megatron's arguments, which the page does not read",
             "--model and the other flags, or the lambcast command");
}

// A log's arguments are then refused by decode().
bool bears_on_cost(std::string_view) { return true; }

}  // namespace lambcast::megatron
