// Kernels of low-rank adapters beside a frozen product (Hu et al. 2021, arXiv 2106.09685):
//
//   y = x W + (alpha / r) (dropout(x) A) B        A (in, r), B (r, out), W frozen
//
// On M tokens of a rank, in and out its widths, bytes per element of 16 bits, each kernel apart
// (NVIDIA NeMo, collections/nlp/modules/common/megatron/adapters/parallel_adapters.py):
//
//   forward    dropout 5 M in; x A (M, r, in); its product with B (M, out, r); scale 4 M out; added
//              to the frozen product's output 6 M out
//   backward   scale 4 M out; of B (r, out, M) and of x A (M, r, out); of A (in, r, M) and of x
//              (M, in, r); dropout 5 M in; added to the frozen product's input gradient 6 M in
//
// or compiled and not divided, where the product with B scales and adds to what is there, and
// dropout backward adds too, 7 M in (NeMo collections/llm/peft/lora.py, TEFusedLoRALinear, which
// Transformer Engine 2.7 brought, without tensor parallelism).
// Adapters are in 16 bits where the frozen products are in fewer. Left out: below the first block's
// adapters nothing needs a gradient, so that its frozen product has none of its input.
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
