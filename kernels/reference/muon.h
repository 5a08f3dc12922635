// CPU reference of Muon as a rule of part.h: the momentum of each matrix is replaced by a matrix
// with the same singular directions and singular values near 1, found by Newton-Schulz iterations.
//
//   M = mu M + (1 - mu) G;   D = (1 - mu) G + mu M with Nesterov, else D = M
//   X = D / max(|D|, eps), transposed if it has more rows than columns
//   five times:   A = X X';   B = b A + c A A;   X = a X + B X
//   p = p - lr weight_decay p;   p = p - lr scale X
//
// An iteration maps each singular value s to a s + b s^3 + c s^5. With the default coefficients
// this does not converge to 1: five iterations map 0.01 to 1 into 0.68 to 1.14. The three products
// for X of n x m elements, n <= m, take 4 n^2 m + 2 n^3 FLOPs. As in the programs, X, A and B are
// rounded to bf16, and products are summed in fp32.
//
// Each rank keeps the momentum of its part. A matrix is made whole for the iterations, which every
// rank of the tensor then computes (Moonshot's distributed form, arXiv:2502.16982). Vectors run
// AdamW. The caller must leave out embeddings and heads, for which the programs use AdamW too.
//
// Sources: kellerjordan.github.io/posts/muon; torch/optim/_muon.py; DeepSpeed
// runtime/zero/muon/original_muon.py; NVIDIA Emerging-Optimizers muon.py (used by Megatron-LM).
#pragma once

#include <span>
#include <vector>

#include "kernels/options.h"
#include "kernels/reference/part.h"

namespace lambcast::reference {

// The factor on the update of a matrix of `rows` outputs and `columns` inputs.
enum class MuonScale {
  shape,     // sqrt(max(1, rows / columns)): torch's "original", DeepSpeed, Megatron shape_scaling
  spectral,  // sqrt(max(rows, columns)): Megatron's default
  match_adamw,  // 0.2 times `spectral`: torch's "match_rms_adamw", Moonshot
  unit_rms,     // sqrt(rows / columns): Megatron's unit_rms_norm
};
double muon_scale(MuonScale scale, MatrixShape shape);

struct NewtonSchulz {
  double a = 3.4445, b = -4.7750, c = 2.0315;
  int iterations = 5;
  double eps = 1e-7;
  bool in_bf16 = true;  // else in fp32
};

// Returns the matrix after the iterations, row by row like `values`. Adds the FLOPs of its products
// to `flops`, if given.
std::vector<float> orthogonalised(std::span<const float> values, MatrixShape shape,
                                  const NewtonSchulz& options, double* flops = nullptr);

struct MuonOptions {
  double lr = 1e-3, momentum = 0.95, weight_decay = 0.1;
  bool nesterov = true;
  MuonScale scale = MuonScale::shape;
  NewtonSchulz iterations{};
  AdamOptions vectors{.bias_correction = true};
};

struct Muon {
  MuonOptions options;

  struct State {
    std::vector<float> m;
    std::vector<float> v;       // vectors only
    std::vector<float> update;  // X; the whole matrix
  };
  State state(const Part& part) const;
  int rounds(int) const { return 1; }
  Sums sums(int round, const View& x, State& state, int step) const;  // the whole D
  void take(int round, const View& x, State& state, const Sums& total, int step) const;
  void apply(const View& x, State& state, int step) const;
};

}  // namespace lambcast::reference
