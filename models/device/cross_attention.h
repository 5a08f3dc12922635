// Kernels of a decoder's attention to the tokens of its encoder (Vaswani et al. 2017, section
// 3.2.3; T5), between the attention to its own tokens and the feed-forward. With M tokens of the
// decoder and M_e of the encoder on a rank, a heads of d elements, t tensor parallel ranks:
//   cross query       (M, a d / t, h)        cross key-value   (M_e, 2 a d / t, h)
//   cross projection  (M, h, a d / t)
// and the attention core of s_d queries and s_e keys per sample, without a causal mask; a norm, and
// a dropout add. The encoder's output is the input of the keys and values of every block, so its
// gradients are summed: 6 bytes per element. Source: NVIDIA Megatron-LM
// core/transformer/attention.py, CrossAttention.
#pragma once

#include "models/device/piece_writer.h"

namespace lambcast {

// Write the pieces of a block with encoder_tokens > 0.
void cross_attention(const PieceWriter& writer);
void cross_attention_backward(const PieceWriter& writer);

}  // namespace lambcast
