#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "models/training/plan/buffers.h"
#include "models/training/plan/gradient_reduction.h"
#include "models/training/run/training_case.h"

namespace lambcast {
namespace {

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

// The optimizer gets N = 335,184,706 elements of BERT-Large (without the pooler), padded to a
// multiple of n * lcm(n, 8). Expected values are worked out by hand.
struct Padded {
  int ranks;
  std::int64_t elements;
};
const Padded bert_large_padded[] = {
    {8, 335'184'768}, {32, 335'184'896}, {64, 335'187'968}, {128, 335'200'256}, {256, 335'216'640}};

TEST_CASE("buffers: 1-bit LAMB fuses everything into one padded buffer") {
  for (const Padded& row : bert_large_padded) {
    const TrainingPlan training = training_of({OptimizerType::onebit_lamb, row.ranks});
    CHECK(compressed_buffers(training) == std::vector<std::int64_t>{row.elements});
  }
  // Numbers of ranks that are not powers of two: lcm(3, 8) = 24 and lcm(12, 8) = 24.
  for (const auto& [ranks, multiple] : {std::pair{1, 8}, {3, 72}, {5, 200}, {12, 288}}) {
    const std::int64_t padded =
        compressed_buffers(training_of({OptimizerType::onebit_lamb, ranks}))[0];
    CHECK(padded % multiple == 0);
    CHECK(padded >= 335'184'706);
    CHECK(padded < 335'184'706 + multiple);
  }
}

TEST_CASE("buffers: the 1-bit Adams pad each group with fp16 and each tensor without") {
  for (const auto type : {OptimizerType::onebit_adam, OptimizerType::zero_one_adam}) {
    TrainingPlan training = training_of({type, 128});
    // Groups of decay 334,303,232, no_decay 357,186 and position 524,288 elements, padded at 128
    // ranks to multiples of 16,384: 20404.25.. -> 20405, 21.8 -> 22, and exactly 32 for position.
    CHECK(compressed_buffers(training) ==
          std::vector<std::int64_t>{20405 * 16384, 22 * 16384, 32 * 16384});
    training.recipe.precision.weights = DataType::bf16;
    CHECK(compressed_buffers(training)[0] == 20405 * 16384);
    // BF16_Optimizer of DeepSpeed before 0.17.6 gives a rank 1/128 of each group, aligned to 256
    // elements: 2,611,744 -> 160 x 16384, 2,792 -> 16384 and 4,096 -> 16384.
    training.recipe.engine.wraps_bf16_as_fp16 = false;
    CHECK(compressed_buffers(training) == std::vector<std::int64_t>{160 * 16384, 16384, 16384});
    training.recipe.precision.weights = DataType::fp32;
    const std::vector<std::int64_t> buffers = compressed_buffers(training);
    CHECK(buffers.size() == 398);
    // A LayerNorm bias of 1024 elements is padded to 16384.
    CHECK(*std::min_element(buffers.begin(), buffers.end()) == 16384);
    for (const std::int64_t buffer : buffers) CHECK(buffer % 16384 == 0);
  }
}

TEST_CASE("buffers: gradient buckets close once they exceed 5e8 elements") {
  const TrainingPlan bert = training_of({OptimizerType::lamb});
  CHECK(gradient_reduction(bert).buckets == std::vector<std::int64_t>{336'234'306});
  for (const char* model : {"gpt2-xl", "megatron-8.3b"}) {
    const TrainingPlan training = training_of({OptimizerType::adam, 8, "hgx-h100-ndr", model});
    const std::vector<std::int64_t> buckets = gradient_reduction(training).buckets;
    std::int64_t largest = 0;
    for (const Tensor& tensor : training.model->tensors)
      largest = std::max(largest, tensor.elements);
    CHECK(sum(buckets) == parameters(*training.model));
    CHECK(buckets.size() >= 3);
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      // A bucket may overshoot by its last tensor; only the last bucket may fall short.
      if (i + 1 < buckets.size()) CHECK(buckets[i] > 500'000'000);
      CHECK(buckets[i] <= 500'000'000 + largest);
    }
  }
}

TEST_CASE("buffers: ZeRO closes a bucket before it would exceed reduce_bucket_size") {
  TrainingPlan training = training_of({OptimizerType::adam, 8});
  training.recipe.zero.stage = 2;
  // ZeRO sums the elements of the tensors that the optimizer gets, without the pooler.
  CHECK(gradient_reduction(training).buckets == std::vector<std::int64_t>{335'184'706});
  for (const std::int64_t limit : {50'000'000, 5'000'000, 1, 0}) {
    training.recipe.zero.bucket = limit;
    const std::vector<std::int64_t> buckets = gradient_reduction(training).buckets;
    CHECK(sum(buckets) == 335'184'706);
    // The word embedding is registered first, so it comes last. It is larger than most buckets.
    const std::int64_t largest = limit < 31'260'672 ? 31'260'672 : limit;
    for (const std::int64_t bucket : buckets) CHECK(bucket <= largest);
    if (limit < 2) CHECK(buckets.size() == optimized_tensor_count(*training.model));
  }
  training.recipe.zero.bucket = 5'000'000;
  const std::vector<std::int64_t> backwards = gradient_reduction(training).buckets;
  CHECK(backwards.back() == 31'260'672);
  // Stage 1 without overlap takes the parameters in order.
  training.recipe.zero.stage = 1;
  CHECK(gradient_reduction(training).buckets.front() == 31'260'672);
  training.recipe.zero.overlap = true;
  CHECK(gradient_reduction(training).buckets == backwards);
}

TEST_CASE("buffers: bf16 without ZeRO summed fp32 buffers of whole groups before 0.17.6") {
  TrainingPlan training = training_of({OptimizerType::adamw, 64, "dgx-a100-80g", "llama2-7b"});
  training.recipe.engine.wraps_bf16_as_fp16 = false;
  training.recipe.precision.weights = DataType::bf16;
  CHECK(gradient_reduction(training).buckets == flat_groups(training));
  CHECK(gradient_bytes(training) == 2);
}

TEST_CASE("buffers: DDP's buckets hold 25 MiB from the last layer backwards") {
  TrainingPlan training = training_of({OptimizerType::lamb});
  training.overlap = Overlap::ddp;
  for (const bool fp16 : {true, false}) {
    training.recipe.precision.weights = fp16 ? DataType::fp16 : DataType::fp32;
    const double limit = 25 * 1024 * 1024 / (fp16 ? 2. : 4.);
    const std::vector<std::int64_t> buckets = gradient_reduction(training).buckets;
    CHECK(sum(buckets) == 336'234'306);
    for (std::size_t i = 0; i + 1 < buckets.size(); ++i)
      CHECK(static_cast<double>(buckets[i]) > limit);
    // The word embedding (31 M elements) is registered first, so it comes last.
    CHECK(buckets.back() > 31'000'000);
  }
}

TEST_CASE("buffers: DDP's bucket of 25 MiB holds exactly its number of elements") {
  TrainingPlan training = training_of({OptimizerType::lamb});
  training.overlap = Overlap::ddp;
  ModelShape model = *training.model;
  const auto buckets = [&](std::int64_t last) {
    model.tensors = {{"first", 1, -1, {}}, {"last", last, -1, {}}};
    training.model = std::make_shared<const ModelShape>(model);
    return gradient_reduction(training).buckets;
  };
  const std::int64_t full = 25 * 1024 * 1024 / 2;  // fp16
  CHECK(buckets(full) == std::vector<std::int64_t>{full + 1});
  CHECK(buckets(full + 1) == std::vector<std::int64_t>{full + 1, 1});
}

TEST_CASE(
    "buffers: gradients are sent as communication_data_type, else in the training precision") {
  TrainingPlan training = training_of({});
  CHECK(gradient_bytes(training) == 2);
  training.recipe.precision.gradients = DataType::fp32;
  CHECK(gradient_bytes(training) == 4);
  training.recipe.precision.gradients = {};
  training.recipe.precision.weights = DataType::fp32;
  CHECK(gradient_bytes(training) == 4);
  training.recipe.precision.weights = DataType::bf16;
  CHECK(gradient_bytes(training) == 2);
}

TEST_CASE("volume: the bytes on the wires match the closed forms exactly") {
  for (const char* cluster : {"paper-eth40-v100", "paper-edr100-v100", "azure-ndv2"}) {
    for (const Padded& row : bert_large_padded) {
      INFO(cluster << ", " << row.ranks << " ranks");
      // Every cluster uses the flat ring here. Tree and hierarchy send the same number of bytes per
      // rank on average, which the tests of collectives check.
      const TrainingPlan training = training_of(
          {OptimizerType::onebit_lamb,
           row.ranks,
           cluster,
           "bert-large",
           {{"nccl.all_reduce", "{value = \"ring\", kind = \"assumed\", source = \"test\"}"}}});
      const double n = row.ranks, share = 2 * (n - 1) / n;
      // fp16 gradients of all 336,234,306 parameters, all-reduced in a ring.
      const double warmup = share * 2 * 336'234'306;
      CHECK(std::abs(metrics_of(training, StepKind::warmup).wire_bytes_per_gpu.value() - warmup) <
            0.5);
      // Two phases of packed signs, two of 4-byte scales to n - 1 other ranks, and one byte of
      // overflow flag.
      const double compression =
          share * static_cast<double>(row.elements) / 8 + 8 * (n - 1) + share;
      CHECK(std::abs(metrics_of(training, StepKind::compression).wire_bytes_per_gpu.value() -
                     compression) < 0.5);
    }
  }
}

TEST_CASE("volume: 1-bit sends 16 times fewer bytes than fp16 for the same elements") {
  for (const Padded& row : bert_large_padded) {
    // Only the signs, without scales and flag: 2(n-1)/n Np/8 bytes against 2(n-1)/n 2 Np.
    const TrainingPlan training = training_of({OptimizerType::onebit_lamb, row.ranks});
    const double n = row.ranks, share = 2 * (n - 1) / n;
    const double signs = metrics_of(training, StepKind::compression).wire_bytes_per_gpu.value() -
                         8 * (n - 1) - share;
    CHECK(share * 2 * static_cast<double>(row.elements) / signs == Approx(16).epsilon(1e-12));
  }
}

}  // namespace
}  // namespace lambcast
