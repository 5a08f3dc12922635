// SOAP (Vyas et al. 2024, arXiv:2409.11321): Adam in the eigenbasis of Shampoo's preconditioner, as
// in its reference (nikhilvyas/SOAP, soap.py). For a matrix of n x m elements, in fp32,
//
//   statistics    L += G G^T, R += G^T G                      2 n m (n + m) FLOPs
//   projection    G' = Q_L^T G Q_R, and the step back         2 n m (n + m) each
//   every f-th    new Q_L and Q_R: a power iteration and a    6 (n^3 + m^3) FLOPs of products,
//   step          QR decomposition of each                    8/3 (n^3 + m^3) of decompositions
//
// f is precondition_frequency, 10 by default. A side above 10,000 (max_precond_dim) has no basis
// and adds no costs. States are two moments, and two matrices for each side with a basis, 4 bytes
// per element: 8 + 8 (n / m + m / n) bytes per parameter. Embeddings, head and vectors run AdamW.
//
// Decompositions are assumed to run as slowly as GaLore's (galore.h).
//
// The reference runs on one device. Ranks that share states are assumed to gather whole matrices as
// for Muon (muon.h), and replicas to compute all of them. Left out: bases that are merged over
// several dimensions, and separate costs for the refreshing steps.
#pragma once

#include "models/optimizer/optimizer_model.h"

namespace lambcast {

// Return the FLOPs for a matrix, averaged over steps, with new bases in every `every`-th step.
double soap_product_flops(const StateTensor& matrix, double every);
double soap_decomposition_flops(const StateTensor& matrix, double every);

}  // namespace lambcast
