// Fine-tuning with low-rank adapters (LoRA, Hu et al. 2021, arXiv 2106.09685): all weights of a
// model are frozen, and chosen products get two thin matrices that are trained,
//
//   y = x W + (alpha / r) x A B        A (in, r), B (r, out)
//
// so gradients, optimizer states and their exchange have r (in + out) elements per product:
//
//   attention      queries, keys and values as one product, and the projection
//   feed-forward   up (with its gate) as one product, and down; not of experts
//
// (NVIDIA NeMo, target_modules: attention, or all). A frozen product keeps no input activation,
// since only a weight gradient needs it. An adapter keeps its input after dropout, 2 bytes per
// element, and the dropout mask, 1. Llama 2 70B, rank 16, attention: 44.6M of 69.0G elements are
// trained.
//
// QLoRA (Dettmers et al. 2023, arXiv 2305.14314): the blocks' frozen matrices have b bits per
// element (ModelShape::quantized_bits); embedding, norms and head have the run's precision. NF4 has
// 4 bits and an fp32 scale per 64 elements, b = 4.5; with double quantization 8 bits per scale and
// an fp32 scale per 256 of these, b = 4.127. Before each product (forward, backward and
// recomputed), a kernel writes the matrix in 16 bits: 2 + b / 8 bytes per element (bitsandbytes
// autograd/_functions.py, MatMul4Bit). Left out: paged optimizer states, and the product of
// LLM.int8(), which is priced like one of 16 bits.
#pragma once

#include "models/shape/shape.h"

namespace lambcast {

const std::vector<std::string>& adapter_target_names();

// Returns `shape` with frozen tensors and with adapters in every layer. Throws Error (usage, at
// `where`) for models without transformer blocks, for latent attention, and for adapters on a
// feed-forward of experts.
ModelShape with_adapters(ModelShape shape, const Adapters& adapters, const Where& where);

}  // namespace lambcast
