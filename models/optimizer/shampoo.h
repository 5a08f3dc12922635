// Distributed Shampoo (Shi et al. 2023, arXiv:2309.06497; facebookresearch/optimizers,
// distributed_shampoo), grafted on Adam. A matrix is cut into blocks of at most b x b elements, b =
// 8,192 (max_preconditioner_dim of its examples). For a block G of n x m elements, in fp32,
//
//   statistics    L += G G^T, R += G^T G                    2 n m (n + m) FLOPs
//   direction     L^(-1/4) M R^(-1/4), M the mean of G      2 n m (n + m)
//   roots         eigenvalues and vectors V of L and R,     9 (n^3 + m^3), every f-th step
//                 and V D^(-1/4) V^T                        2 (n^3 + m^3)
//
// f is precondition_frequency, 100 in its examples. States are M, Adam's second moment, and two
// matrices for each side of a block, 4 bytes per element: 8 + 8 (n / m + m / n) bytes per parameter
// of a block. Embeddings, head and vectors run AdamW.
//
// Ranks with the same states divide the blocks and their states, and gather all directions, 4 bytes
// per element (DDPDistributedConfig, its defaults). Ranks that share states, or the tensors
// themselves, work on the blocks of their own rows or slices (FSDPDistributor).
//
// An eigendecomposition takes the 9 s^3 FLOPs of the symmetric QR algorithm (Golub and Van Loan,
// Matrix Computations, section 8.3), assumed to run as slowly as GaLore's (galore.h). Left out:
// passes over the factors, unequal shares of the ranks, steps before the first roots, and separate
// costs for steps with roots.
#pragma once

#include "models/optimizer/optimizer_model.h"

namespace lambcast {

// Return the FLOPs for a matrix, averaged over steps, with roots in every `every`-th step.
double shampoo_product_flops(const StateTensor& matrix, double every);
double shampoo_decomposition_flops(const StateTensor& matrix, double every);

}  // namespace lambcast
