// The tensors of BERT-Large as the optimizer sees them in DeepSpeed's bing_bert example: 398 of
// them, 335,184,706 elements (24 layers, hidden 1024, ffn 4096, vocabulary 30,528, no pooler).
#pragma once

#include <cstddef>

#include "kernels/layout.h"

namespace lambcast {

constexpr std::size_t bert_large_elements = 335184706;

TensorLayout bert_large_tensors();

// The same 398 tensors shrunk or grown in proportion to `elements` in total.
TensorLayout bert_like_tensors(std::size_t elements);

}  // namespace lambcast
