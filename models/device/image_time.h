// Costs that plain PyTorch modules add to the kernels of block_time.h: images divided into patches
// and windows (Swin), and torch.autocast.
//
// M tokens of h elements; r, w: 2-byte elements read, written; R, W: 4-byte ones.
//
//   patch embedding  product (M, h, v), v values per patch, and a norm; backward without a gradient
//                    of the image
//   merging          joins four tokens r w over M 2h, norm, product (M, h, 2h), both passes
//   windows          groups the tokens of a window and restores their order, r w twice; in every
//                    second block the image is rolled before and after: half as much again
//   drop path        two kernels r w per branch, both passes
//
// Windows of n tokens: attention of M / n samples of n tokens, unmasked, with a bias for each pair.
//
// torch.autocast keeps weights and the residual stream in fp32 and runs norms and softmax there:
//   norm             R W, then R w for the following product; backward as eager, twice the bytes
//   residual         r R W; backward R w
//   heads            queries scaled r w; queries, keys, values and context each copied r w for the
//                    batched products. Backward the scale and the context's copy; for each of
//                    queries, keys and values a copy into zeros of all three (w 3 + r w), their two
//                    sums (3 (r r w)), and one more copy of all: 86 bytes per element of h
//   scores           bias r w, to fp32 r W, softmax R W, back R w; backward r W, R R W, R w, and
//                    the bias's sum r
//   weights          R w forward, their gradients r W backward; biases' gradients a sum r
// Sources: microsoft/Swin-Transformer models/swin_transformer_moe.py (WindowAttention,
// SwinTransformerBlock, PatchMerging), timm DropPath; PyTorch 1.8 to 1.12 aten autocast_mode.cpp,
// select_backward. Counted by reading, not measured: kind assumed.
#pragma once

#include "models/device/piece_writer.h"

namespace lambcast {

void patch_embedding_forward(const PieceWriter& writer, std::int64_t tokens);
void patch_embedding_backward(const PieceWriter& writer, std::int64_t tokens);

// Return the pieces that merge tokens. The tokens of `work` are those of the merged output.
std::vector<Piece> merging_forward(const BlockWork& work, const GpuRates& rates);
std::vector<Piece> merging_backward(const BlockWork& work, const GpuRates& rates);

// Add the same pieces in both passes, over `elements` = M h.
void windows(const PieceWriter& writer, double elements);
void drop_path(const PieceWriter& writer, double elements);

// Write the copies around the batched products of attention under autocast.
void heads_forward(const PieceWriter& writer, double elements);
void heads_backward(const PieceWriter& writer, double elements);

}  // namespace lambcast
