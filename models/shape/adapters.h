// Fine-tuning with low-rank adapters (LoRA, Hu et al. 2021, arXiv 2106.09685): all weights of a
// model are frozen, and beside chosen products stand two thin matrices that are trained,
//
//   y = x W + (alpha / r) x A B        A (in, r), B (r, out)
//
// so gradients, optimizer states and their exchange are of r (in + out) elements a product:
//
//   attention      queries, keys and values as one product, and the projection
//   feed-forward   up (with its gate) as one product, and down; not of experts
//
// (NVIDIA NeMo, target_modules: attention, or all). Of activations a frozen product keeps no input,
// since that is for a weight gradient; an adapter keeps what dropout leaves of its own, 2 bytes an
// element, and a mask, 1. Llama 2 70B, rank 16, attention: 44.6M of 69.0G elements are trained.
//
// QLoRA (Dettmers et al. 2023, arXiv 2305.14314): the blocks' frozen matrices are held in b bits an
// element (ModelShape::quantized_bits), embedding, norms and head in the run's precision. NF4 has
// 4 bits and an fp32 scale for each 64 elements, b = 4.5; with double quantization 8 bits a scale
// and an fp32 scale for each 256 of these, b = 4.127. Before each product, forward, backward and
// repeated, a kernel writes the matrix in 16 bits: 2 + b / 8 bytes an element (bitsandbytes
// autograd/_functions.py, MatMul4Bit). Left out: paged optimizer states, and the product of
// LLM.int8(), which is priced as one of 16 bits.
#pragma once

#include "models/shape/shape.h"

namespace lambcast {

const std::vector<std::string>& adapter_target_names();

// `shape` with its tensors frozen and adapters in every layer, on rank, group and names of their
// own. Of blocks with heads; throws Error (usage, at `where`) for latent attention, and for
// feed-forward adapters where those are experts.
ModelShape with_adapters(ModelShape shape, const Adapters& adapters, const Where& where);

}  // namespace lambcast
