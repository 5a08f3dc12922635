// The optimizers that lambcast forecasts: one row each in the table below, and one file each for
// its costs. Every difference between optimizers is a member of OptimizerModel. To add one, write
// its file and its row (.github/CONTRIBUTING.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/optimizer/step_phases.h"

namespace lambcast {

// The table of optimizers: NAME is OptimizerType::NAME, and its file defines NAME_model.
#define LAMBCAST_OPTIMIZERS(ROW) \
  ROW(adam)                      \
  ROW(adamw)                     \
  ROW(lamb)                      \
  ROW(onebit_adam)               \
  ROW(onebit_lamb)               \
  ROW(zero_one_adam)             \
  ROW(lars)                      \
  ROW(distributed_lamb)          \
  ROW(adafactor)                 \
  ROW(came)                      \
  ROW(galore_adamw8bit)          \
  ROW(lion)                      \
  ROW(sgd)                       \
  ROW(sgd_momentum)              \
  ROW(muon)                      \
  ROW(dion)                      \
  ROW(soap)                      \
  ROW(shampoo)                   \
  ROW(adam_mini)                 \
  ROW(schedule_free_adamw)

enum class OptimizerType {
#define LAMBCAST_ROW(name) name,
  LAMBCAST_OPTIMIZERS(LAMBCAST_ROW)
#undef LAMBCAST_ROW
      count,  // number of optimizers
};
inline constexpr auto optimizer_count = static_cast<std::size_t>(OptimizerType::count);

// One tensor of a model, for factored and projected states.
struct StateTensor {
  double elements = 0;
  double rows = 0, columns = 0;  // 0: a vector
};

// Settings of optimizers that decompose matrices. Those of GaLore's projection have the names of
// Colossal-AI's get_galore_param_groups and constructor. The constructor's is_paged is not modelled
// (bitsandbytes: states in managed memory, which the driver moves to the host if GPU memory is
// full): states are in GPU memory, its default.
struct Projection {
  std::int64_t rank = 256;
  std::int64_t update_proj_gap = 200;  // steps between decompositions
  std::int64_t min_8bit_size = 4096;   // elements of a state; smaller ones are fp32
  // SOAP, Shampoo: steps between decompositions; unset: the default of the optimizer.
  std::optional<std::int64_t> precondition_frequency = {};

  bool operator==(const Projection&) const = default;
};

// Work of a step on each whole matrix of a block, in addition to its passes. Embeddings, head and
// vectors run AdamW.
struct MatrixWork {
  double (*product_flops)(const StateTensor& matrix, double every);
  // Share of the peak of half-precision products that these products reach, its name in a forecast,
  // and its source. Assumed.
  double share;
  std::string_view share_name, share_source;
  // Returns the FLOPs of decompositions, averaged over steps.
  double (*decomposition_flops)(const StateTensor& matrix, double every) = nullptr;
  // Elements of two fp32 factors that ranks with parts of a matrix add up, so that no rank needs
  // the whole matrix.
  double (*factor_elements)(const StateTensor& matrix) = nullptr;
  // Default number of steps between decompositions, the argument `every` of the functions above. 0:
  // the optimizer has no decompositions, or their interval is not a setting.
  std::int64_t every = 0;
  // Whether the optimizer works on blocks instead of whole matrices. A rank works on the blocks of
  // its own part. Ranks with the same states divide the blocks equally, and gather the results in
  // fp32.
  bool in_blocks = false;
};

struct OptimizerModel {
  OptimizerType type;
  std::string_view name;   // in flags, files and columns: "onebit_lamb"
  std::string_view title;  // on pages and in figures: "1-bit LAMB"
  std::string_view label;  // in its own messages: "1-bit Lamb"
  OptimizerType plain;     // baseline of its speed-up; itself without compression
  bool of_deepspeed;
  std::optional<OptimizerType> in_onebit = {};  // DeepSpeed's 1-bit form of this optimizer
  // DeepSpeed wraps it in FP16_Optimizer, which passes one flat tensor per group. Other optimizers
  // get every tensor from FP16_UnfusedOptimizer.
  bool flat_in_fp16 = false;
  bool onebit = false;  // sends signs after a warm-up
  bool is_lamb = false;
  // Computes a norm of every tensor's weights and update, which ranks with shared states must sum.
  bool layerwise = false;
  std::optional<MatrixWork> matrix_work = {};
  bool in_kernels = true;  // kernels/cuda has its step; if not, Kernels::fused means DeepSpeed's
  // Its step in kernels/cuda does not write the 16-bit copy of the weights; a separate pass,
  // round_to, does.
  bool rounds_apart = false;

  // Returns the costs of the update, without compressed_allreduce. Kernels::fused are those of
  // kernels/. With weight decay (`decays`) unfused optimizers launch additional kernels.
  Passes (*update)(StepKind step, Kernels kernels, bool decays);
  // Returns the kinds of steps over a run.
  StepPhases (*phases)(const RunOfSteps& run) = uniform_phases;
  // Whether every element has the same states, in any tensor.
  bool same_states = true;
  // Returns the bytes of fp32 (or 8-bit) states, without master weights.
  double (*state_bytes)(const StateTensor& tensor, const Projection& projection);

  // Number of blocking all-reduces of a scalar per tensor, if ranks share its states or the tensor
  // itself. Then the number of scalars that tensor-parallel ranks combine into one all-reduce.
  int sums_per_tensor = 0;
  int numbers_over_slices = 1;
  // Number of statistics of a matrix that are kept as means of its rows and columns.
  int factored_statistics = 0;
  // Share of the published run's steps before compression starts; 0: no compression.
  double published_freeze_share = 0;
};

const OptimizerModel& model_of(OptimizerType type);
inline std::string_view name_of(OptimizerType type) { return model_of(type).name; }
inline bool is_onebit(OptimizerType type) { return model_of(type).onebit; }
inline bool is_lamb(OptimizerType type) { return model_of(type).is_lamb; }

// Returns the optimizer to use when compression is judged: the 1-bit form, or the type itself if it
// compresses.
OptimizerType onebit_of(OptimizerType type);

// Returns the models in the order of OptimizerType.
std::span<const OptimizerModel* const> optimizer_models();
// Returns the names of the optimizers, in the same order.
const std::vector<std::string>& optimizer_names();

// Return the bytes of states with two fp32 moments, and with one.
double two_moments(const StateTensor& tensor, const Projection&);
double one_moment(const StateTensor& tensor, const Projection&);

#define LAMBCAST_ROW(name) extern const OptimizerModel name##_model;
LAMBCAST_OPTIMIZERS(LAMBCAST_ROW)
#undef LAMBCAST_ROW

}  // namespace lambcast
