// The page reads no launch scripts, whose parser would make it larger than 1.5 MB.
#include "models/megatron/arguments.h"
#include "sim/base/error.h"

namespace lambcast::megatron {

Arguments decode(std::string_view, const std::string& file, const Variables&) {
  fail_input({file, 0, {}}, "has Megatron's arguments, which the page does not read",
             "--model and the other flags, or the lambcast command");
}

}  // namespace lambcast::megatron
