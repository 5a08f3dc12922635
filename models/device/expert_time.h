// Kernels of the experts of one block on one rank. They replace the feed-forward of block_time.h,
// between the collectives that send tokens to the ranks of their experts and back.
//
// T tokens of a rank, k experts per token, E experts, E_l of them on the rank with f columns each,
// R rows that they compute together, h hidden (2-byte elements read, r, and written, w):
//
//   router       (T, E, h); scores and choice in bytes, 12 T E
//   permute      r T h, w S h    S copies sent, one per expert. No permute if a rank gets each
//                                token once (deduplicated): the exchange reads the tokens directly
//   sort         r D h, w R h    D received copies, by expert, if the rank has several experts
//   up, down     E_l products (R / E_l, 2 f if gated, h) and (R / E_l, h, f) in one call (grouped):
//                their blocks fill the GPU together, each expert wastes its own edge tiles; at the
//                share of the rate that grouped kernels reach (piece_writer.h)
//   activation   as in block_time.h, over R f, with the router's weight
//   bias         for gpt-oss, times the router's weight in fp32, after the down product: the
//                product with it w w, the sum r r w, joined over all experts r w, back to 16 bits
//                r w, 24 bytes per element of R h; backward including the sums for bias and
//                weight, 40 (experts.py, _apply_bias)
//   unsort, unpermute   the same in reverse
//   shared       the products of experts that every token visits, with T t tokens of f_s / t
//
// The backward pass repeats all of these for gradients. Weight gradients of E_l experts are E_l
// small products. Rows: dropless R = T k i, with i the load of the busiest rank over the mean; with
// a capacity factor c R = T k c for any tokens, since empty places are computed too (DeepSpeed
// moe/sharded_moe.py).
// Sources: Megatron-LM core/transformer/moe/{token_dispatcher,experts,router}.py.
//
// One-hot routing multiplies tokens to their places and back instead of copying them (fairseq,
// DeepSpeed without Tutel): with S = E c places of c per expert, instead of permute and unpermute
//
//   weights      T S elements in fp32 from a product for each of the k choices, summed; converted
//                to booleans, and both to the tokens' format: 4 k + 12 (k - 1) + 14 bytes per
//                element (fp32: 10 instead of 14); backward 6 + 4 k (fp32: 4 k)
//   dispatch     product (S, h, T), combine (T, h, S); backward (T, h, S), (S, h, T) and for the
//                weights (T, S, h)
//
// which grows with T^2. Sources: facebookresearch/fairseq modules/moe/top1gate.py, top2gate.py,
// moe_layer.py; DeepSpeed moe/sharded_moe.py.
#pragma once

#include "models/device/piece_writer.h"

namespace lambcast {

// Write the pieces between the norm before the experts and the residual after them.
void experts_forward(const PieceWriter& writer, const ExpertWork& experts);
void experts_backward(const PieceWriter& writer, const ExpertWork& experts);

}  // namespace lambcast
