#include "models/training/memory/memory.h"

#include <catch2/catch.hpp>
#include <map>

#include "models/training/price/passage.h"
#include "models/training/run/training_case.h"

namespace lambcast {
namespace {

constexpr double all = 336'234'306;        // parameters of BERT-Large
constexpr double optimized = 335'184'706;  // without the pooler
constexpr double padded_32 = 335'184'896;  // padded to a multiple of 32 * lcm(32, 8)

std::map<std::string, double> parts_of(const TrainingPlan& training) {
  std::map<std::string, double> parts;
  double sum = 0;
  const MemoryForecast memory = forecast_memory(training);
  for (const auto& [part, bytes] : memory.parts) {
    CHECK(parts.emplace(part, bytes.value()).second);
    sum += bytes.value();
  }
  CHECK(memory.peak.value() == Approx(sum).epsilon(1e-12));
  CHECK(memory.fits == (memory.peak <= training.device->memory_capacity));
  return parts;
}

// Returns all parts except passes and the runtime.
std::map<std::string, double> states_of(const TrainingPlan& training) {
  std::map<std::string, double> parts = parts_of(training);
  for (const char* part :
       {"activations", "loss", "recomputed", "block_gradients", "unused", "runtime"})
    parts.erase(part);
  return parts;
}

double without_passes(const TrainingPlan& training) {
  double sum = 0;
  for (const auto& [part, bytes] : states_of(training)) sum += bytes;
  return sum;
}

TEST_CASE("memory: fp16 LAMB holds 16 bytes per parameter") {
  for (const auto type : {OptimizerType::lamb, OptimizerType::adam}) {
    const auto parts = states_of(training_of({type, 32}));
    CHECK(parts.at("weights") == 2 * all);
    CHECK(parts.at("gradients") == 2 * all);
    CHECK(parts.at("master_weights") == 4 * optimized);
    CHECK(parts.at("momentum") == 4 * optimized);
    CHECK(parts.at("variance") == 4 * optimized);
    CHECK(parts.size() == 5);
  }
}

TEST_CASE("memory: fp32 needs no master copy") {
  TrainingPlan training = training_of({OptimizerType::lamb, 32});
  training.recipe.precision.weights = DataType::fp32;
  const auto parts = parts_of(training);
  CHECK(parts.at("weights") == 4 * all);
  CHECK(parts.at("gradients") == 4 * all);
  CHECK_FALSE(parts.contains("master_weights"));
}

TEST_CASE("memory: 1-bit LAMB holds 24 + 4/n bytes per parameter, and temporaries of the step") {
  TrainingPlan training = training_of({OptimizerType::onebit_lamb, 32});
  const auto parts = parts_of(training);
  CHECK(parts.at("fresh_variance") == 4 * optimized);
  CHECK(parts.at("worker_error") == 4 * padded_32);
  CHECK(parts.at("server_error") == 4 * padded_32 / 32);
  // The momentum before the step and fp32 gradients, 8 bytes; signs, both as bytes and packed.
  CHECK(parts.at("temporaries") == Approx(8 * optimized + 1.25 * padded_32));
  CHECK(without_passes(training) - parts.at("temporaries") ==
        Approx(4 * all + (12 + 4) * optimized + (4 + 4 / 32.) * padded_32));
  CHECK((without_passes(training) - parts.at("temporaries")) / all ==
        Approx(24 + 4 / 32.).epsilon(0.005));
  training.kernels = Kernels::fused;
  CHECK(parts_of(training).at("temporaries") < parts.at("temporaries") / 10);
}

TEST_CASE("memory: the 1-bit Adams hold no second variance") {
  const auto parts = parts_of(training_of({OptimizerType::onebit_adam, 32}));
  CHECK_FALSE(parts.contains("fresh_variance"));
  // Buffers of each group, padded to a multiple of 1024.
  CHECK(parts.at("worker_error") >= 4 * optimized);
  CHECK(parts.at("worker_error") < 4 * (optimized + 3 * 1024));
  CHECK_FALSE(parts.contains("momentum_accumulator"));
  for (const Kernels kernels : {Kernels::deepspeed, Kernels::fused}) {
    TrainingPlan zero_one = training_of({OptimizerType::zero_one_adam, 32});
    zero_one.kernels = kernels;
    CHECK(parts_of(zero_one).at("momentum_accumulator") == 4 * optimized);
  }
}

TEST_CASE("memory: ZeRO shards the optimizer, and from stage 2 the gradients") {
  TrainingPlan training = training_of({OptimizerType::adam, 32});
  const auto whole = parts_of(training);
  for (const std::int64_t stage : {1, 2}) {
    training.recipe.zero.stage = stage;
    const auto parts = parts_of(training);
    for (const char* part : {"master_weights", "momentum", "variance"})
      CHECK(parts.at(part) == Approx(whole.at(part) / 32));
    CHECK(parts.at("weights") == whole.at("weights"));
    CHECK(parts.at("gradients") == Approx(whole.at("gradients") / (stage == 2 ? 32 : 1)));
    // The whole bucket is allocated for every model; overlap_comm allocates a second one.
    CHECK(parts.at("gradient_buckets") == 2 * 500e6);
    training.recipe.zero.bucket = 200'000'000;
    CHECK(parts_of(training).at("gradient_buckets") == 2 * 200e6);
    training.recipe.zero.overlap = true;
    CHECK(parts_of(training).at("gradient_buckets") == 2 * 2 * 200e6);
    training.recipe.zero = {};
  }
}

TEST_CASE("memory: bf16 without ZeRO is held as fp16 since DeepSpeed 0.17.6") {
  const TrainingPlan fp16 = training_of({OptimizerType::adamw, 32, "dgx-a100-80g"});
  const TrainingPlan bf16 = bf16_of({OptimizerType::adamw, 32, "dgx-a100-80g"});
  CHECK(parts_of(bf16) == parts_of(fp16));
}

TEST_CASE(
    "memory: bf16 without ZeRO sharded the optimizer and held gradients twice before 0.17.6") {
  TrainingPlan training = training_of({OptimizerType::adamw, 32, "dgx-a100-80g"});
  training.recipe.engine.wraps_bf16_as_fp16 = false;
  training.recipe.precision.weights = DataType::bf16;
  const auto parts = parts_of(training);
  CHECK(parts.at("weights") == 2 * all);
  CHECK(parts.at("gradients") == 2 * all);
  CHECK(parts.at("gradient_sums") == 4 * optimized);
  for (const char* part : {"master_weights", "momentum", "variance"})
    CHECK(parts.at(part) == Approx(4 * optimized / 32));
  // Under ZeRO, gradients are summed in bf16, unless data_types.grad_accum_dtype sets fp32.
  training.recipe.zero.stage = 1;
  CHECK_FALSE(parts_of(training).contains("gradient_sums"));
  training.recipe.precision.sums = DataType::fp32;
  CHECK(parts_of(training) == parts);
  training.recipe.zero.stage = 2;
  CHECK(parts_of(training).at("gradients") == Approx(4 * all / 32));

  // BF16_Optimizer: 8 bytes per parameter, and 12 more divided over 64 ranks. DeepSpeed trains
  // these 6.7 G parameters on 80 GB.
  TrainingPlan llama = training_of({OptimizerType::adamw, 64, "dgx-a100-80g", "llama2-7b"});
  llama.batch = {64, 1, 1};
  llama.recipe.precision.weights = DataType::bf16;
  llama.recipe.engine.wraps_bf16_as_fp16 = false;
  CHECK(without_passes(llama) ==
        Approx((8 + 12 / 64.) * static_cast<double>(parameters(*llama.model))));
}

// A layout that divides nothing has the same activations. The scores take 5 a s^2 b bytes in each
// of 48 blocks.
TEST_CASE("memory: attention keeps its scores if its passes are priced so") {
  TrainingPlan training = training_of({OptimizerType::adam, 8, "hgx-h100-ndr", "gpt2-xl", {}});
  training.seq_len = 1024;
  const double fused = parts_of(training).at("activations");
  TrainingPlan layout = training;
  layout.parallelism = priced_as(training);
  REQUIRE(layout.parallelism);
  CHECK(parts_of(layout).at("activations") == Approx(fused));
  layout.parallelism->attention = AttentionKernel::unfused;
  CHECK(parts_of(layout).at("activations") - fused == Approx(48 * 16 * 5 * 25. * 1024 * 1024));
  // If the model was timed as a whole, the value of its description is used.
  TrainingPlan timed = training_of({OptimizerType::adam, 8});
  REQUIRE_FALSE(priced_as(timed));
  const double kept = parts_of(timed).at("activations");
  timed.model = std::make_shared<const ModelShape>(
      load_model("bert-large", std::vector<ModelOverride>{{"model.flash_attention", "true"}}));
  CHECK(kept - parts_of(timed).at("activations") == Approx(24 * 16 * 5 * 16. * 128 * 128));
}

// 16 bytes per parameter and the same passes, with and without a layout.
TEST_CASE("memory: a run without a layout holds as much as with one that divides nothing") {
  for (const std::int64_t micro : {1, 8}) {
    TrainingPlan training = training_of({OptimizerType::adam, 8, "hgx-h100-ndr", "gpt2-xl", {}});
    training.seq_len = 1024;
    training.batch = {8 * micro, micro, 1};
    TrainingPlan layout = training;
    layout.parallelism = undivided(training);
    const MemoryForecast none = forecast_memory(training), whole = forecast_memory(layout);
    CHECK(none.peak.value() == Approx(whole.peak.value()).epsilon(1e-3));
  }
}

// Two fp32 copies of the masked tokens' logits, in addition to the kept logits.
TEST_CASE("memory: BERT's loss covers its masked tokens") {
  const TrainingPlan training = training_of({OptimizerType::adam, 8});
  const ModelShape& bert = *training.model;
  CHECK(bert.head_share < 0.2);
  const double tokens = static_cast<double>(training.batch.micro * training.seq_len);
  CHECK(parts_of(training).at("loss") ==
        Approx(8 * tokens * bert.head_share * static_cast<double>(bert.vocab)));
}

TEST_CASE("memory: a run that exactly fills the GPU fits") {
  TrainingPlan training = training_of({OptimizerType::lamb, 32});
  Device device = *training.device;
  device.memory_capacity = forecast_memory(training).peak;
  training.device = std::make_shared<const Device>(device);
  CHECK(forecast_memory(training).fits);
  device.memory_capacity = Bytes(device.memory_capacity.value() - 1);
  training.device = std::make_shared<const Device>(device);
  CHECK_FALSE(forecast_memory(training).fits);
}

TEST_CASE("memory: activations grow with the micro batch until the GPU is full") {
  TrainingPlan training = training_of({OptimizerType::lamb, 32});
  CHECK(forecast_memory(training).fits);
  double last = 0;
  for (const std::int64_t micro : {1, 2, 4, 8, 16, 64, 256}) {
    training.batch = {micro * 32, micro, 1};
    const double now = parts_of(training).at("activations");
    CHECK(now > last);
    last = now;
  }
  CHECK_FALSE(forecast_memory(training).fits);
}

}  // namespace
}  // namespace lambcast
