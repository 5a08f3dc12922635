// The optimizers that lambcast forecasts: one row each in the table below, one file each for its
// costs. Every difference between optimizers is a member of OptimizerModel. To add one, write its
// file and add its row (.github/CONTRIBUTING.md).
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

// The table: NAME is OptimizerType::NAME, described by NAME_model of its file.
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
  ROW(adam_mini)                 \
  ROW(schedule_free_adamw)

enum class OptimizerType {
#define LAMBCAST_ROW(name) name,
  LAMBCAST_OPTIMIZERS(LAMBCAST_ROW)
#undef LAMBCAST_ROW
      count,  // none: how many there are
};
inline constexpr auto optimizer_count = static_cast<std::size_t>(OptimizerType::count);

// One tensor of a model, as factored and projected states depend on it.
struct StateTensor {
  double elements = 0;
  double rows = 0, columns = 0;  // 0: a vector
};

// How GaLore projects, under the names of Colossal-AI's get_galore_param_groups and constructor.
// The constructor's is_paged (bitsandbytes: states in managed memory, which the driver moves to the
// host where a GPU's own is full) is not modelled: states are taken to be the GPU's, its default.
struct Projection {
  std::int64_t rank = 256;
  std::int64_t update_proj_gap = 200;  // steps from one decomposition to the next
  std::int64_t min_8bit_size = 4096;   // elements of a state; smaller ones stay in fp32

  bool operator==(const Projection&) const = default;
};

// Work of a step on each whole matrix of a block, beyond its passes. Embeddings, head and
// vectors run AdamW.
struct MatrixWork {
  double (*product_flops)(const StateTensor& matrix);
  // Share of the peak of half-precision products that these reach, its name among the numbers of a
  // forecast, and where it is from. Assumed.
  double share;
  std::string_view share_name, share_source;
  // FLOPs of decompositions, in the mean over steps.
  double (*decomposition_flops)(const StateTensor& matrix) = nullptr;
  // Elements of two fp32 factors that ranks add up instead of coming to the whole matrix.
  double (*factor_elements)(const StateTensor& matrix) = nullptr;
};

struct OptimizerModel {
  OptimizerType type;
  std::string_view name;   // "onebit_lamb": flags, files and columns
  std::string_view title;  // "1-bit LAMB": pages and figures
  std::string_view label;  // "1-bit Lamb", as its messages say it
  OptimizerType plain;     // what its speed-up is against; itself where it compresses nothing
  bool of_deepspeed;
  std::optional<OptimizerType> in_onebit = {};  // the same one in DeepSpeed's 1-bit form
  // DeepSpeed wraps it in FP16_Optimizer, which passes one flat tensor per group. All others get
  // every tensor from FP16_UnfusedOptimizer.
  bool flat_in_fp16 = false;
  bool onebit = false;  // sends signs after a warm-up
  bool is_lamb = false;
  // Takes a norm of every tensor's weights and update, which ranks that share states must sum.
  bool layerwise = false;
  std::optional<MatrixWork> matrix_work = {};
  bool in_kernels = true;  // kernels/cuda has its step; Kernels::fused are DeepSpeed's where not
  // Its step in kernels/cuda leaves the 16-bit copy of the weights to round_to, a pass behind it.
  bool rounds_apart = false;

  // The update, without compressed_allreduce. Kernels::fused are those of kernels/. `decays`: there
  // is weight decay, which unfused optimizers launch kernels for.
  Passes (*update)(StepKind step, Kernels kernels, bool decays);
  // The kinds of its steps over a run.
  StepPhases (*phases)(const RunOfSteps& run) = uniform_phases;
  // Every element has the same states, in any tensor.
  bool same_states = true;
  // Bytes of fp32 (or 8-bit) states, without the master weights.
  double (*state_bytes)(const StateTensor& tensor, const Projection& projection);

  // Blocking all-reduces of a number of each tensor where ranks share its states or the tensor
  // itself, and how many numbers are stacked in one over tensor-parallel ranks.
  int sums_per_tensor = 0;
  int numbers_over_slices = 1;
  // Statistics of a matrix that are kept as means of its rows and of its columns.
  int factored_statistics = 0;
  // Share of the published run before compression starts; 0: none, and nothing to start.
  double published_freeze_share = 0;
};

const OptimizerModel& model_of(OptimizerType type);
inline std::string_view name_of(OptimizerType type) { return model_of(type).name; }
inline bool is_onebit(OptimizerType type) { return model_of(type).onebit; }
inline bool is_lamb(OptimizerType type) { return model_of(type).is_lamb; }

// Returns the optimizer to compare with when compression is judged: the type itself if it
// compresses.
OptimizerType onebit_of(OptimizerType type);

// In the order of OptimizerType.
std::span<const OptimizerModel* const> optimizer_models();
// Their names.
const std::vector<std::string>& optimizer_names();

// States of two fp32 moments, and of one.
double two_moments(const StateTensor& tensor, const Projection&);
double one_moment(const StateTensor& tensor, const Projection&);

#define LAMBCAST_ROW(name) extern const OptimizerModel name##_model;
LAMBCAST_OPTIMIZERS(LAMBCAST_ROW)
#undef LAMBCAST_ROW

}  // namespace lambcast
