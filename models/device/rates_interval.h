// Half width of the 90 % interval of passes priced kernel by kernel (rates_width() of
// compute_interval.h), in logarithms.
//
// It combines three sources of error. First, the rates that kernels reach on a generation of GPUs:
// k sources of whole models on it that set none of its shares were off by s, the root of the mean
// over sources of their mean squares (`held_out` of a preset). Two or three sources are few, so
// they are combined with the typical error of a generation, v, which counts like m further sources.
// Second, the error p of a step beyond its kernels: from one source of published rows to the next,
// programs launch, overlap and divide their work differently. Third, the level of a program that
// was not measured on the machine, with the spread S over the levels of n programs
// (topologies/program_level.h).
//
//   w = sqrt(t_{m+k}^2 ((m v^2 + k s^2) / (m + k) + p^2) + t_n^2 S^2)
//
// with t_f the 95 % point of Student's distribution with f degrees of freedom (Cornish and Fisher's
// expansion): fewer sources widen w, and so do fewer programs.
//
// If the share of the peak that products in a format reach is assumed, t_5 R is added to w in
// quadrature, and no coverage is claimed:
//
//   R = 0.20    standard deviation of the logarithm over the fitted shares of half-precision
//               products: 0.73 (A100), 0.55 (A30), 0.495 (B200), 0.62 (H100), 0.82 (V100)
//
//   v = 0.073   root mean square over the 14 held-out sources of four generations
//               (validate/compute/kernel_rates_test.cc)
//   m = 4       as for the bands of a calibration (validate/calibrate/calibrate.cc); assumed
//   p = 0.050   mean squared error of the rows of 27 sources that set no constant, averaged over
//               sources, in excess of the variance of their generations above
//               (validate/replay/program_spread_test.cc); 0.041 to 0.052 without any one of them
//
// The result is 0.15 (A100, H100), 0.16 (B200) and 0.22 (V100) for a program of known level.
#pragma once

#include "models/device/compute_interval.h"

namespace lambcast {

inline constexpr double typical_off = 0.073, typical_sources = 4, program_spread = 0.050;
inline constexpr double share_spread = 0.20;
inline constexpr int fitted_shares = 5;

// Returns the variance of the logarithm of the rates that kernels of a GPU reach.
double kernel_variance(const HeldOut& of_device);

// Returns the 95 % point of Student's distribution.
double student_95(double freedom);

}  // namespace lambcast
