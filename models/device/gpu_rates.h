// Rates that the kernels of a training step reach on one GPU, and times of kernels limited by
// memory.
//
// They supplement the peaks of device.h, since one share of a peak does not describe a product of
// 128 columns, one of 16,384 and a softmax. Here each kernel has its own limit:
//
//   matrix units      peak of the format x share      share: clock under power and quality of the
//                                                     library's kernels, fitted per GPU and format
//   fused attention   peak of 16 bits x share_attention, next to the exponentials of its softmax
//                     (attention_kernel.h); 1.29 share_half by default
//   memory            copy_bandwidth of the device x share_memory (default 1): norms, casts and
//                     activations move fewer bytes per second than a long copy
//   exponentials      16 per clock and multiprocessor (32 from GB300): the softmax inside attention
//   start             idle time of the GPU around every kernel
//
// A device description states them in [rates] (models/device/presets). Left out: caches (outputs of
// the previous kernel are read from memory), and kernels that run concurrently.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "models/device/compute_interval.h"
#include "sim/base/provenance.h"
#include "sim/base/table.h"
#include "sim/base/units.h"

namespace lambcast {

// Formats of the operands of a matrix product. single: fp32 data, TF32 if the GPU has it. half:
// fp16 and bf16. fp8 has a scale per tensor, mxfp8 and nvfp4 per block of 32 and 16 elements.
enum class MatrixFormat { single, half, fp8, mxfp8, nvfp4 };
inline constexpr std::size_t matrix_formats = 5;

std::string_view name_of(MatrixFormat format);
double bytes_per_element(MatrixFormat format);

namespace generation {
inline constexpr double volta = 7.0, turing = 7.5, ampere = 8.0, hopper = 9.0, blackwell = 10.0;
}

struct MatrixRate {
  Sourced<FlopRate> peak;  // zero: the GPU has no units for the format
  Sourced<double> share;
};

struct GpuRates {
  std::string device;
  // NVIDIA's number of the GPU generation, which determines the available kernels: 7.0 Volta, 7.5
  // Turing, 8.0 Ampere, 8.9 Ada, 9.0 Hopper, 10.0 Blackwell. The default depends on the formats
  // that the GPU multiplies.
  double compute_capability = generation::ampere;
  int multiprocessors = 0;
  std::array<MatrixRate, matrix_formats> matrix;
  std::optional<Sourced<double>> share_attention;
  Sourced<FlopRate> peak_vector;  // fp32 outside the matrix units
  Sourced<Bandwidth> memory;
  Sourced<FlopRate> exponentials;
  Sourced<Duration> kernel_start;
  // Factors on the times of a block's products, attention and other kernels (PieceKind).
  std::array<double, 3> piece_factors{1, 1, 1};
  // Errors of whole models on this GPU that set none of its shares (validate/compute). Absent if
  // there are none.
  std::optional<HeldOut> held_out;

  const MatrixRate& of(MatrixFormat format) const {
    return matrix[static_cast<std::size_t>(format)];
  }
  // Returns peak x share. Throws Error (usage) if the GPU has no units for the format.
  FlopRate reached(MatrixFormat format) const;
};

// Numbers that decode_rates() takes from the device's own keys.
struct DeviceNumbers {
  std::string name;
  Sourced<FlopRate> peak_single, peak_half;
  Sourced<Bandwidth> copy_bandwidth;
};
// Decodes [rates]. Throws Error (usage) with file, line and key for a share outside 0 .. 1, and a
// share without a peak.
GpuRates decode_rates(const Table& rates, const DeviceNumbers& device);

// Returns `rates` with the time of every kernel multiplied by `factor`, for machines that measure
// slower (another power limit, older libraries).
GpuRates slowed(GpuRates rates, double factor);

// The rates that a kernel's time depends on: matrix units by format, then the others.
enum class Rate { single, half, fp8, mxfp8, nvfp4, vector, memory, exponentials, start };
inline constexpr std::size_t rate_count = 9;

inline Rate rate_of(MatrixFormat format) { return static_cast<Rate>(format); }

// Parts of a time by the rate that determines them; they sum to that time.
struct RateTimes {
  std::array<Duration, rate_count> of;

  Duration& operator[](Rate rate) { return of[static_cast<std::size_t>(rate)]; }
  RateTimes& operator+=(const RateTimes& other);
};
RateTimes operator*(RateTimes times, std::int64_t count);
inline RateTimes operator+(RateTimes a, const RateTimes& b) { return a += b; }

struct KernelCost {
  Flops flops;
  Bytes bytes;  // read and written in device memory
  Duration duration;
  RateTimes rests_on{};
};

// Returns the cost of `kernels` kernels in sequence that together move `bytes` and compute nothing.
// Zero bytes mean no kernel.
KernelCost memory_cost(Bytes bytes, int kernels, const GpuRates& rates);

}  // namespace lambcast
