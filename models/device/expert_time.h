// Kernels of the experts of one block on one rank: what stands in the place of the feed-forward
// of block_time.h, between the collectives that carry tokens to the ranks of their experts and
// back.
//
// T tokens of a rank, k experts a token, E experts, E_l of them on the rank with f columns each, R
// rows that they compute together, h hidden (2-byte elements read, r, and written, w):
//
//   router       (T, E, h); scores and choice by bytes, 12 T E
//   permute      r T h, w S h    S copies sent, one for each expert, or where a rank gets a token
//                                once (deduplicated) none: the exchange reads the tokens themselves
//   sort         r D h, w R h    D copies that arrived, by expert, where the rank has several
//   up, down     E_l products (R / E_l, 2 f if gated, h) and (R / E_l, h, f) in one call (grouped):
//                their blocks fill the GPU together, each expert wastes its own edge; at the
//                share of the rate that grouped kernels reach (piece_writer.h)
//   activation   as in block_time.h, over R f, with the router's weight
//   bias         of gpt-oss, times the router's weight in fp32, after the down product: the product
//                with it w w, the sum r r w, joined of all experts r w, back to 16 bits r w, 24
//                bytes an element of R h; backward the sums for bias and weight too, 40
//                (experts.py, _apply_bias)
//   unsort, unpermute   the same back
//   shared       the products of experts that every token visits, with T t tokens of f_s / t
//
// One-hot routing multiplies tokens to their places and back instead of copying them (fairseq,
// DeepSpeed without Tutel): with S = E c places of c an expert, in the place of permute and
// unpermute
//
//   weights      T S elements in fp32 from a product of each of the k choices, summed; as booleans,
//                and both as the tokens are: 4 k + 12 (k - 1) + 14 bytes an element (fp32: 10 of
//                the 14); backward 6 + 4 k (4 k)
//   dispatch     product (S, h, T), combine (T, h, S); backward (T, h, S), (S, h, T) and of the
//                weights (T, S, h)
//
// which grows with T^2. Sources: facebookresearch/fairseq modules/moe/top1gate.py, top2gate.py,
// moe_layer.py; DeepSpeed moe/sharded_moe.py.
//
// and each again backward, for gradients. Weight gradients of E_l experts are E_l small products.
// Rows: dropless R = T k i, i the imbalance of the fullest rank; to a capacity (factor c) R = T k
// c, whatever the tokens, since empty places are computed too (DeepSpeed moe/sharded_moe.py).
// Sources: Megatron-LM core/transformer/moe/{token_dispatcher,experts,router}.py.
#pragma once

#include "models/device/piece_writer.h"

namespace lambcast {

// Between the norm before the experts and the residual after them.
void experts_forward(const PieceWriter& writer, const ExpertWork& experts);
void experts_backward(const PieceWriter& writer, const ExpertWork& experts);

}  // namespace lambcast
