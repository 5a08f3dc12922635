// CPU reference of GaLore with AdamW as a rule of part.h: a matrix's gradient is projected on
// `rank` of its singular directions, Adam's moments live in that small space, its update is
// projected back.
//
//   every gap steps: G = U S V';  more rows than columns or as many: R = G Q, Q = first rank rows
//   of V' fewer rows: R = Q' G, Q = first rank columns of U m, v, N = Adam(R), in 8 bits from
//   min_8bit_size elements on;   p = p - lr scale N Q' (or Q N) p = p - lr weight_decay p
//
// Vectors, and matrices no larger than the rank on their smaller side, take AdamW on R = G, in 8
// bits too. What is in 8 bits, its blocks share their largest, so that every rank keeps it whole.
// Singular directions are the eigenvectors of G'G or G G', whichever is smaller, in double, by
// Eigen. Where singular values are equal the basis is not unique; of a direction the largest
// component is positive, so that all shardings take the same one. A basis that is not finite is not
// taken, the old one stays.
//
// What the original does otherwise: between refreshes a tensor-parallel rank projects its slice
// with the first directions that fit instead of summing the slices' projections (not offered: it
// depends on shapes that then do not fit), and HybridParallel switches ZeRO off with a line in its
// log, the last option. Sources: GaLore arXiv:2403.03507; Colossal-AI
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

// The basis Q, directions x rank, of a gradient.
std::vector<float> galore_basis(std::span<const float> gradient, MatrixShape shape, int rank);

struct Galore {
  GaloreOptions options;

  struct State {
    std::vector<float> basis;
    std::vector<float> m, v;  // in fp32 where they are not in 8 bits
    EightBitState m8, v8;
    std::vector<float> low;  // R, then N
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
  MatrixShape low_shape(const Part& part) const;  // of R
};

}  // namespace lambcast::reference
