// Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon; Liu et al. 2025, arXiv:2502.16982):
// the momentum of each matrix is replaced by the nearest orthogonal matrix, found by Newton-Schulz
// iterations in bf16. With X of n x m elements, n <= m, an iteration computes
//
//   A = X X^T,  B = b A + c A^2,  X = a X + B X        4 n^2 m + 2 n^3 FLOPs
//
// and a step takes five (torch/optim/_muon.py, DeepSpeed's standard form, Megatron's quintic one).
// Matrices of blocks take part; embeddings, head and vectors run AdamW.
//
// An iteration needs the whole matrix. Who computes it where ranks share states:
//
//   DeepSpeed, ZeRO 1 and 2    the ranks that own a part of it (runtime/zero/stage_1_and_2.py)
//   DeepSpeed, ZeRO 3          every d-th matrix is a rank's; a bucket of gradients is all-reduced
//                              instead of scattered, and momenta, updates and momenta are gathered
//   Megatron-LM                whole matrices have an owner among the data-parallel ranks
//                              (core/optimizer, LayerWiseDistributedOptimizer)
//   FSDP2 (Dion repository)    an all-to-all makes shards of d equal matrices one whole matrix a
//                              rank, another one brings them back
//   no shared states           every rank computes all of them (torch.optim.Muon under DDP)
//
// The iterations are taken to reach 0.4 of the peak of half-precision products: these are square or
// wide, but five follow one another for one matrix at a time.
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
