// Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon; Liu et al. 2025, arXiv:2502.16982):
// the momentum of each matrix is replaced by the nearest orthogonal matrix, found by Newton-Schulz
// iterations in bf16. With X of n x m elements, n <= m, an iteration computes
//
//   A = X X^T,  B = b A + c A^2,  X = a X + B X        4 n^2 m + 2 n^3 FLOPs
//
// and a step takes five (torch/optim/_muon.py, DeepSpeed's standard form, Megatron's quintic one).
// It applies to matrices of blocks; embeddings, head and vectors run AdamW.
//
// An iteration needs the whole matrix. If ranks share states, it is computed by:
//
//   DeepSpeed, ZeRO 1 and 2    the ranks that own a part of it (runtime/zero/stage_1_and_2.py)
//   DeepSpeed, ZeRO 3          each rank for every d-th matrix; a bucket of gradients is
//                              all-reduced instead of scattered; momenta, updates and momenta are
//                              gathered
//   Megatron-LM                one of the data-parallel ranks, the owner of the whole matrix
//                              (core/optimizer, LayerWiseDistributedOptimizer)
//   FSDP2 (Dion repository)    an all-to-all turns shards of d equal matrices into one whole matrix
//                              per rank, and another one sends them back
//   no shared states           every rank, for all matrices (torch.optim.Muon under DDP)
//
// The iterations are assumed to reach 0.4 of the peak of half-precision products: the matrices are
// square or wide, but five products run in sequence, for one matrix at a time.
//
// Tensor-parallel ranks gather the fp32 matrix and each compute all of it (Megatron's default,
// muon-tp-mode duplicated). Left out: the Gram form, symmetric products, uneven owners, and
// matrices that cross the border of two ZeRO partitions.
#pragma once

#include "models/optimizer/optimizer_model.h"

namespace lambcast {

// Returns the FLOPs of the five Newton-Schulz iterations of a matrix.
double muon_flops(const StateTensor& matrix);

}  // namespace lambcast
