#include "models/shape/families.h"

namespace lambcast {

std::span<const Family> families() {
  static constexpr Family table[] = {
      {"bert", build_bert},
      {"gpt", build_gpt},
      {"llama", build_decoder},
      {"decoder", build_decoder},
      {"moe-llama", build_moe_llama},
      {"moe", build_moe},
      {"t5", build_t5},
      {"switch", build_switch},
      {"resnet", build_resnet},
      {"vit", build_vit},
      {"swin", build_swin},
      {"feed-forward", build_feed_forward},
      {"tensors", build_tensors},
  };
  return table;
}

}  // namespace lambcast
