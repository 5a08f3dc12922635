#include "models/optimizer/passes.h"

#include <cstddef>

namespace lambcast {

std::string_view name_of(Kernels kernels) {
  constexpr std::string_view names[kernels_count] = {"deepspeed", "deepspeed", "deepspeed",
                                                     "nvidia", "fused"};
  return names[static_cast<std::size_t>(kernels)];
}

std::string_view in_words(Kernels kernels) {
  constexpr std::string_view whose[kernels_count] = {"DeepSpeed's", "DeepSpeed's unfused",
                                                     "PyTorch's", "NVIDIA's", "the fused"};
  return whose[static_cast<std::size_t>(kernels)];
}

}  // namespace lambcast
