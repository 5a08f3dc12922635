// CPU reference of GaLore with AdamW as a rule of part.h: a matrix's gradient is projected on
// `rank` of its singular directions, Adam's moments are in that small space, and its update is
// projected back.
//
//   every gap steps: G = U S V'
//     at least as many rows as columns:  R = G Q,    Q = first rank rows of V'
//     fewer rows:                        R = Q' G,   Q = first rank columns of U
//   m, v, N = Adam(R), in 8 bits from min_8bit_size elements on
//   p = p - lr scale N Q' (or Q N);   p = p - lr weight_decay p
//
// Vectors, and matrices whose smaller side is at most the rank, take AdamW on R = G, in 8 bits too.
// The blocks of an 8-bit state share their largest value, so every rank keeps the whole state.
// Singular directions are the eigenvectors of G'G or G G', whichever is smaller, in double, by
// Eigen. If singular values are equal the basis is not unique. The largest component of each
// direction is positive, so that all shardings have the same one. A basis that is not finite is
// rejected, and the old one stays.
//
// Deviations of the original: between refreshes a tensor-parallel rank projects its slice with the
// first directions that fit, instead of summing the slices' projections (not offered, because the
// shapes then do not fit). HybridParallel switches ZeRO off with a line in its log (the last
// option). Sources: GaLore arXiv:2403.03507; Colossal-AI
// nn/optimizer/{galore,distributed_galore}.py; bitsandbytes for the 8-bit states.
#pragma once

#include "kernels/reference/eight_bit.h"
#include "kernels/reference/part.h"

namespace lambcast::reference {

struct GaloreOptions {
  double lr = 1e-2;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 1e-2;
  int rank = 256;
  int gap = 200;
  double scale = 0.25;
  bool eight_bit = true;
  std::size_t min_8bit_size = 4096;
  int percentile_clipping = 100;

  bool zero_switched_off = false;  // the layout's ZeRO stage is ignored
};

// Returns the basis Q of a gradient, directions x rank.
std::vector<float> galore_basis(std::span<const float> gradient, MatrixShape shape, int rank);

struct Galore {
  GaloreOptions options;

  struct State {
    std::vector<float> basis;
    std::vector<float> m, v;  // in fp32 if not in 8 bits
    EightBitState m8, v8;
    std::vector<float> low;  // R; afterwards N
    PercentileClipping clipping;
  };
  State state(const Part& part) const;
  int rounds(int step) const { return refreshes(step) ? 3 : 2; }
  Sums sums(int round, const View& x, State& state, int step) const;
  void take(int round, const View& x, State& state, const Sums& total, int step) const;
  void apply(const View& x, State& state, int step) const;

  bool refreshes(int step) const { return (step - 1) % options.gap == 0; }
  bool projects(const Part& part) const;
  bool in_8_bits(const Part& part) const;
  MatrixShape low_shape(const Part& part) const;  // shape of R
};

}  // namespace lambcast::reference
