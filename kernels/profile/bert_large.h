// The tensors of BERT-Large that the optimizer gets in DeepSpeed's bing_bert example: 398 tensors,
// 335,184,706 elements (24 layers, hidden 1024, ffn 4096, vocabulary 30,528, no pooler).
#pragma once

#include <cstddef>

#include "kernels/layout.h"

namespace lambcast {

constexpr std::size_t bert_large_elements = 335184706;

TensorLayout bert_large_tensors();

// Returns the same 398 tensors, scaled to `elements` in total.
TensorLayout bert_like_tensors(std::size_t elements);

}  // namespace lambcast
