#include "models/shape/likeness.h"

#include <algorithm>
#include <tuple>

namespace lambcast {
namespace {

// Returns the numbers that determine the kernels of a block, in addition to the FLOPs of its matrix
// products.
auto kernels_of(const ModelShape& shape) {
  return std::tie(shape.hidden, shape.heads, shape.kv_heads, shape.head_size, shape.value_size,
                  shape.latent, shape.window, shape.window_every, shape.window_layers, shape.causal,
                  shape.parallel_block, shape.norms, shape.norms_queries, shape.gated, shape.rotary,
                  shape.biased_experts, shape.ffn, shape.dropout, shape.experts,
                  shape.experts_per_token, shape.dense_ffn, shape.shared_ffn, shape.pyramid,
                  shape.decoder, shape.drop_path, shape.adapters, shape.distances);
}

bool same_flops(const Cost& a, const Cost& b) { return a.forward_flops == b.forward_flops; }

// Returns whether every block of the model costs the same as `first`.
bool repeats(const ModelShape& shape, const Cost& first) {
  return shape.pyramid.empty() && !shape.decoder && shape.experts == 0 &&
         std::all_of(shape.blocks.begin(), shape.blocks.end(),
                     [&](const Cost& block) { return same_flops(block, first); });
}

// Returns whether two convolutional nets have blocks of the same kinds, in any numbers: true for
// ResNet-50 and ResNet-101, false for VGG or the plain blocks of ResNet-34.
bool same_kinds(const ModelShape& a, const ModelShape& b) {
  const auto has_each = [](const ModelShape& all, const ModelShape& of) {
    return std::ranges::all_of(of.blocks, [&](const Cost& block) {
      return std::ranges::any_of(all.blocks,
                                 [&](const Cost& other) { return same_flops(block, other); });
    });
  };
  return has_each(a, b) && has_each(b, a);
}

bool same_outside(const ModelShape& a, const ModelShape& b) {
  return a.vocab == b.vocab && a.embedding == b.embedding && a.head_share == b.head_share &&
         a.patch_values == b.patch_values && a.predicted_layers == b.predicted_layers &&
         same_flops(a.outside, b.outside);
}

}  // namespace

Likeness likeness(const ModelShape& a, const ModelShape& b) {
  if (kernels_of(a) != kernels_of(b)) return Likeness::other;
  if (same_outside(a, b) && a.expert_layers == b.expert_layers &&
      std::equal(a.blocks.begin(), a.blocks.end(), b.blocks.begin(), b.blocks.end(), same_flops))
    return Likeness::same;
  if (a.blocks.empty() || b.blocks.empty()) return Likeness::other;
  const bool alike = is_convolutional(a)
                         ? same_kinds(a, b)
                         : repeats(a, a.blocks.front()) && repeats(b, a.blocks.front());
  return alike ? Likeness::blocks : Likeness::other;
}

}  // namespace lambcast
