// Kernels of low-rank adapters next to a frozen product (Hu et al. 2021, arXiv 2106.09685):
//
//   y = x W + (alpha / r) (dropout(x) A) B        A (in, r), B (r, out), W frozen
//
// For M tokens per rank and widths in and out, at 2 bytes per element, each kernel separately
// (NVIDIA NeMo, collections/nlp/modules/common/megatron/adapters/parallel_adapters.py):
//
//   forward    dropout 5 M in; x A (M, r, in); its product with B (M, out, r); scaling 4 M out;
//              addition to the frozen product's output 6 M out
//   backward   scaling 4 M out; gradients of B (r, out, M) and x A (M, r, out); of A (in, r, M) and
//              x (M, in, r); dropout 5 M in; addition to the frozen product's input gradient 6 M in
//
// If compiled and without tensor parallelism, the product with B also scales and adds to the
// existing output, and the backward dropout also adds, 7 M in (NeMo collections/llm/peft/lora.py,
// TEFusedLoRALinear, available from Transformer Engine 2.7). Adapters have 16 bits if the frozen
// products have fewer. Not modelled: frozen products below the first block's adapters need no input
// gradient.
#pragma once

#include <string_view>

#include "models/device/piece_writer.h"

namespace lambcast {

struct AdaptedProduct {
  std::int64_t tokens, in, out;
};

void adapter_forward(const PieceWriter& writer, const AdaptedProduct& product);
void adapter_backward(const PieceWriter& writer, const AdaptedProduct& product);

}  // namespace lambcast
