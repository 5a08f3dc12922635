#include "models/shape/families.h"

namespace lambcast {

std::span<const Family> families() {
  const std::vector<std::string_view> blocks{"layers", "hidden", "heads",
                                             "ffn",    "vocab",  "max_seq_len"};
  const auto with = [](std::vector<std::string_view> keys, std::vector<std::string_view> more) {
    keys.insert(keys.end(), more.begin(), more.end());
    return keys;
  };
  const std::vector<std::string_view> experts = with(blocks, {"experts", "experts_per_token"});
  const std::vector<std::string_view> two_stacks{"encoder_layers", "decoder_layers", "hidden",
                                                 "heads",          "head_dim",       "ffn",
                                                 "vocab",          "max_seq_len"};
  static const std::vector<Family> table{
      {"bert", build_bert, with(blocks, {"pre_layer_norm"}), "bert-large"},
      {"gpt", build_gpt, blocks, "gpt2"},
      {"llama", build_decoder, blocks, "llama2-7b"},
      {"decoder", build_decoder, blocks, "llama2-7b"},
      {"moe-llama", build_moe_llama, experts, "mixtral-8x22b"},
      {"moe", build_moe, experts, "qwen3-30b-a3b"},
      {"t5", build_t5, two_stacks, "t5-large"},
      {"switch", build_switch, with(two_stacks, {"sparse_every", "experts", "experts_per_token"}),
       "switch-base-64"},
      {"resnet", build_resnet, {"blocks", "width", "classes", "image_size"}, "resnet50"},
      {"vgg", build_vgg, {"convolutions", "width", "hidden", "classes", "image_size"}, "vgg16"},
      {"vit",
       build_vit,
       {"layers", "hidden", "heads", "ffn", "classes", "image_size", "patch_size"},
       "vit-l16"},
      {"swin",
       build_swin,
       {"depths", "hidden", "heads", "classes", "image_size", "patch_size", "window_size"},
       "swinv2-base"},
      {"feed-forward",
       build_feed_forward,
       {"layers", "hidden", "ffn", "max_seq_len"},
       "feed-forward"},
      {"tensors", build_tensors, {"forward_flops_per_sample"}, "feed-forward"},
  };
  return table;
}

}  // namespace lambcast
