// The model families that a description can name. A family reads its own keys from [model] and
// fills in tensors, groups and costs; load.cc adds name and provenance and checks the result.
//
//   bert       post-LN, or pre-LN as DeepSpeed's bing_bert; masked-word and next-sentence heads
//   gpt        GPT-2: pre-LN decoder, learned positions, head tied to the embedding; optionally
//              with experts in every n-th block (DeepSpeed-MoE)
//   llama      rotary positions, RMS norms, grouped heads, gated feed-forward, no biases, own head
//   decoder    the same family, for models that change parts of it by keys (decoder.cc)
//   moe-llama  Llama's block with a router and gated experts as the feed-forward (Mixtral)
//   moe        many small experts, shared ones, latent attention (Qwen3-MoE, DeepSeek-V3, gpt-oss)
//   t5         encoder and decoder, relative position bias in the first block, tied head
//   switch     t5 with every second feed-forward a router and experts
//   resnet     residual network on images, of bottleneck or basic blocks
//   vgg        plain convolutions on images, with three large linear layers
//   vit        vision transformer with a class token
//   swin       pyramid of transformer blocks that attend in windows of an image; with experts
//   feed-forward  blocks of two products and nothing else, or of experts: a single layer
//   tensors    any model: a list of tensors, and one FLOP count per sample
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "models/shape/shape.h"
#include "sim/base/table.h"

namespace lambcast {

struct Family {
  std::string_view name;
  // `file` is the whole description. Throws Error (usage) naming file, line and key.
  void (*build)(const Table& file, const Table& model, ModelShape& shape);
  // The required keys of [model], in addition to its name.
  std::vector<std::string_view> required;
  std::string_view preset;  // a preset of this family
};

std::span<const Family> families();

void build_bert(const Table& file, const Table& model, ModelShape& shape);
void build_gpt(const Table& file, const Table& model, ModelShape& shape);
void build_decoder(const Table& file, const Table& model, ModelShape& shape);
void build_moe_llama(const Table& file, const Table& model, ModelShape& shape);
void build_moe(const Table& file, const Table& model, ModelShape& shape);
void build_t5(const Table& file, const Table& model, ModelShape& shape);
void build_switch(const Table& file, const Table& model, ModelShape& shape);
void build_resnet(const Table& file, const Table& model, ModelShape& shape);
void build_vgg(const Table& file, const Table& model, ModelShape& shape);
void build_vit(const Table& file, const Table& model, ModelShape& shape);
void build_swin(const Table& file, const Table& model, ModelShape& shape);
void build_feed_forward(const Table& file, const Table& model, ModelShape& shape);
void build_tensors(const Table& file, const Table& model, ModelShape& shape);

}  // namespace lambcast
