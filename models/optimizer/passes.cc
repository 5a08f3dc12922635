#include "models/optimizer/passes.h"

#include <cstddef>

namespace lambcast {

std::string_view name_of(StepKind kind) {
  constexpr std::string_view names[] = {"uniform", "warmup", "compression", "silent",
                                        "refresh", "round",  "dry_run"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace lambcast
