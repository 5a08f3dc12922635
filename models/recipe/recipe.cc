#include "models/recipe/recipe.h"

#include <algorithm>

#include "models/recipe/wrapper.h"

namespace lambcast {

std::int64_t warmup_steps(const Recipe& recipe) {
  const std::int64_t freeze = std::max<std::int64_t>(recipe.onebit.freeze_step, 2);
  return wrapper_of(recipe) == Wrapper::none ? freeze : freeze - 1;
}

}  // namespace lambcast
