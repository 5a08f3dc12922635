#include "models/training/memory/memory.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "models/shape/adapters.h"
#include "models/training/run/layout_case.h"

namespace lambcast {
namespace {
using parallel::Sharding;

double activation_part(const TrainingPlan& training) {
  for (const auto& [held, bytes] : forecast_memory(training).parts)
    if (held == "activations") return bytes.value();
  return 0;
}

TEST_CASE(
    "layout memory: error feedback of compression is counted for each stage and tensor rank") {
  TrainingPlan training = layout_training({.tp = 5, .dp = 2, .pp = 2});
  const auto held = [&](OptimizerType type, Kernels kernels) {
    training.recipe.optimizer = type;
    training.kernels = kernels;
    std::map<std::string, double> named;
    for (const auto& [name, bytes] : forecast_memory(training).parts)
      named[std::string(name)] = bytes.value();
    return named;
  };
  CHECK_FALSE(held(OptimizerType::adam, Kernels::deepspeed).contains("worker_error"));
  const auto adam = held(OptimizerType::onebit_adam, Kernels::deepspeed);
  // A rank holds about a tenth of the model: tp 5 divides each of the two stages. Embeddings make
  // the stages unequal.
  const double part = static_cast<double>(parameters(*training.model)) / 10;
  CHECK(adam.at("worker_error") == Approx(4 * part).epsilon(0.1));
  CHECK(adam.at("server_error") == adam.at("worker_error") / 2);
  CHECK(adam.at("temporaries") == Approx(9.25 / 4 * adam.at("worker_error")).epsilon(0.001));
  CHECK_FALSE(adam.contains("fresh_variance"));
  const auto lamb = held(OptimizerType::onebit_lamb, Kernels::fused);
  CHECK(lamb.at("fresh_variance") == Approx(lamb.at("worker_error")).epsilon(0.001));
  CHECK(lamb.at("temporaries") == lamb.at("worker_error") / 16);
}

TEST_CASE("layout memory: parts add up, and show what only a framework holds") {
  const auto parts = [](const LayoutCase& of) {
    std::map<std::string, double> named;
    double sum = 0;
    const MemoryForecast memory = forecast_memory(layout_training(of));
    for (const auto& [name, bytes] : memory.parts) {
      CHECK(named.emplace(name, bytes.value()).second);
      sum += bytes.value();
    }
    CHECK(memory.peak.value() == Approx(sum));
    return named;
  };
  const double model = static_cast<double>(parameters(*layout_training({}).model));
  const auto fsdp =
      parts({.dp = 8, .sharding = Sharding::weights, .framework = FrameworkName::torchtitan});
  CHECK(fsdp.at("weights") == Approx(4 * model / 8));
  CHECK(fsdp.at("momentum") + fsdp.at("variance") == Approx(8 * model / 8));
  CHECK_FALSE(fsdp.contains("master_weights"));
  // Two blocks of 12 h^2 + 13 h elements, with their part of the positions and the last norm, and
  // the whole vocabulary, in 16 bits. Gradients of a block or of half the vocabulary, whichever is
  // larger, in their computed and reduced formats.
  const double h = 1600, block = 12 * h * h + 13 * h + (1024 + 2) * h / 48, vocabulary = 50257 * h;
  CHECK(fsdp.at("buffers") == Approx(2 * (2 * block + vocabulary) + (2 + 4) * vocabulary / 2));
  const auto zero =
      parts({.dp = 8, .sharding = Sharding::weights, .framework = FrameworkName::deepspeed});
  CHECK(zero.at("weights") == Approx(2 * model / 8));
  CHECK(zero.at("buffers") > fsdp.at("buffers"));  // 1e9 elements: max_live_parameters
  CHECK(zero.at("gradient_buckets") == 2 * 5e8);
  const auto on_host = parts({.dp = 8,
                              .sharding = Sharding::weights,
                              .framework = FrameworkName::deepspeed,
                              .optimizer_on = OptimizerOn::host});
  CHECK(on_host.at("weights") == zero.at("weights"));
  for (const char* part : {"gradients", "master_weights", "momentum", "variance"})
    CHECK_FALSE(on_host.contains(part));
  CHECK(zero.at("gradients") > 0);
  // A CUDA context of 1.5 GiB, and 0.5 GiB for each communicator: the world, one of data
  // parallelism, one of tensor parallelism, four of the pipeline, and those of context parallelism,
  // whose ranks also share the gradients.
  const double half = 0.5 * 1024 * 1024 * 1024;
  CHECK(parts({}).at("runtime") == 4 * half);
  CHECK(parts({.tp = 5, .dp = 2, .pp = 2}).at("runtime") == 10 * half);
  CHECK(parts({.cp = 2}).at("runtime") == 6 * half);
}

// GPT-2 XL's states on 4 ranks of one node take 18 bytes per parameter at stage 3, and 16 at stage
// 2 with a single micro batch. Sharding does not change the total, and no states stay on the GPU.
TEST_CASE(
    "layout memory: offloaded states must fit the hosts, if the description states their memory") {
  TrainingPlan training = layout_training({.dp = 4,
                                           .sharding = Sharding::weights,
                                           .framework = FrameworkName::deepspeed,
                                           .optimizer_on = OptimizerOn::host});
  const double all = static_cast<double>(parameters(*training.model));
  const double held = forecast_memory(training).host.value();
  CHECK(held == Approx(18 * all));
  training.parallelism->sharding = Sharding::gradients;
  training.batch.gas = 1;
  CHECK(forecast_memory(training).host.value() == Approx(16 * all));
  CHECK(forecast_memory(training).fits);
  const auto with_capacity = [&](const char* size) {
    training.cluster = std::make_shared<const Cluster>(
        load_cluster("dgx-a100-80g", {{"node.host_capacity", size}}));
    return forecast_memory(training).fits;
  };
  CHECK(with_capacity("26 GB"));
  CHECK_FALSE(with_capacity("24 GB"));
}

// Buffers for activations of a micro batch: a gathered input and an output to be scattered, with 2
// bytes per element each.
TEST_CASE("layout memory: sequence parallelism holds two whole activations") {
  const auto buffers = [](bool sequence_parallel) {
    const TrainingPlan training =
        layout_training({.tp = 4, .sequence_parallel = sequence_parallel});
    for (const auto& [held, bytes] : forecast_memory(training).parts)
      if (held == "buffers") return bytes.value();
    return 0.0;
  };
  const TrainingPlan training = layout_training({.tp = 4});
  CHECK(buffers(true) - buffers(false) ==
        Approx(2 * 2. * 1024 * static_cast<double>(training.model->hidden)));
}

// 2 a s^2 bytes in 32 blocks, although the model's description assumes a fused kernel.
TEST_CASE("layout memory: unfused attention keeps the scores of every model") {
  TrainingPlan training = layout_training({.dp = 4, .sharding = Sharding::weights});
  training.model = std::make_shared<const ModelShape>(load_model("llama3-8b", {}));
  const auto activations = [&](AttentionKernel kernel) {
    training.parallelism->attention = kernel;
    for (const auto& [held, bytes] : forecast_memory(training).parts)
      if (held == "activations") return bytes.value();
    return 0.0;
  };
  CHECK(activations(AttentionKernel::unfused) - activations(AttentionKernel::flash2) ==
        Approx(32 * 2 * 32. * 1024 * 1024));
}

// fp32 bytes in addition to the kept softmax: the gradient twice, or the three tensors of PyTorch's
// divided loss. If some memory is unused, that of the 16-bit logits is too.
TEST_CASE("layout memory: the loss holds logits two or three times") {
  const auto part = [](FrameworkName framework, const std::string& name, double unused) {
    TrainingPlan training = layout_training({.tp = 5, .framework = framework});
    training.parallelism->framework.fusion = Fusion::eager;
    training.parallelism->framework.unused_memory = unused;
    for (const auto& [held, bytes] : forecast_memory(training).parts)
      if (held == name) return bytes.value();
    return 0.0;
  };
  const double logits = 1024 * 50257 / 5.;
  CHECK(part(FrameworkName::megatron, "loss", 0) == Approx(2 * 4 * logits));
  CHECK(part(FrameworkName::megatron, "unused", 0) == 0);
  CHECK(part(FrameworkName::torchtitan, "loss", 0) == Approx(3 * 4 * logits));
  CHECK(part(FrameworkName::torchtitan, "unused", 0) == Approx(2 * logits));
}

// Without shared states a bucket is flattened after the activations are freed, so it needs no
// buffer; with shared states there is a bucket, or two if their reduction overlaps the passes.
TEST_CASE("layout memory: DeepSpeed's buckets") {
  const auto buckets = [](Sharding sharding, bool overlaps) {
    TrainingPlan training =
        layout_training({.dp = 8, .sharding = sharding, .framework = FrameworkName::deepspeed});
    training.parallelism->framework.overlaps_gradients = overlaps;
    for (const auto& [held, bytes] : forecast_memory(training).parts)
      if (held == "gradient_buckets") return bytes.value();
    return 0.0;
  };
  CHECK(buckets(Sharding::none, true) == 0);
  CHECK(buckets(Sharding::gradients, false) == 2 * 5e8);
  CHECK(buckets(Sharding::gradients, true) == 2 * 2 * 5e8);
}

// GPT-2 XL: 48 blocks keep 34 s h bytes, of which 2 s h are dropout masks; outside are a mask, s h,
// the inputs of the last norm and the head, 4 s h, and the fp32 softmax of the logits.
TEST_CASE("layout memory: fp32 activations are twice as large, except masks and logits") {
  const auto activations = [](MatrixFormat format) {
    TrainingPlan training = layout_training({});
    training.parallelism->format = format;
    training.parallelism->framework.fusion = Fusion::eager;
    return activation_part(training);
  };
  const double half = activations(MatrixFormat::half);
  const double same = 1024. * 1600 * (48 * 2 + 1) + 4. * 1024 * 50257;
  CHECK(activations(MatrixFormat::single) == Approx(2 * (half - same) + same));
}

// Under BF16_Optimizer, which wraps bf16 in pipelines, gradients are also summed in fp32.
TEST_CASE("layout memory: a pipeline of DeepSpeed in bf16 sums gradients in fp32") {
  TrainingPlan training =
      layout_training({.dp = 8, .pp = 2, .framework = FrameworkName::deepspeed});
  const auto sums = [&] {
    std::map<std::string, double> named;
    for (const auto& [part, bytes] : forecast_memory(training).parts) named[part] = bytes.value();
    return named["gradient_sums"] / named.at("gradients");
  };
  CHECK(sums() == 0);
  training.recipe.precision.weights = DataType::bf16;
  CHECK(sums() == Approx(2));
}

// Hybrid shards: 8 of 32 ranks share one copy of the states, so that each rank holds four times as
// much as if all 32 shared it.
TEST_CASE("layout memory: ranks hold a share of their own copy") {
  const auto states = [](int shard_ranks) {
    TrainingPlan training = layout_training(
        {.dp = 32, .sharding = Sharding::weights, .framework = FrameworkName::torchtitan});
    training.parallelism->shard_ranks = shard_ranks;
    return forecast_memory(training).states.value();
  };
  CHECK(states(8) == Approx(4 * states(32)));
}

TEST_CASE("layout memory: frozen weights have the format of their products, and no states") {
  TrainingPlan training = layout_training({.dp = 4});
  const double weights = static_cast<double>(parameters(*training.model));
  training.model = std::make_shared<const ModelShape>(with_adapters(*training.model, {16}, {}));
  const auto part = [&](const std::string& name) {
    for (const auto& [held, bytes] : forecast_memory(training).parts)
      if (held == name) return bytes.value();
    return 0.0;
  };
  const double adapters = 48 * 16 * 6 * 1600.;
  CHECK(part("weights") == Approx(2 * weights + 2 * adapters));
  CHECK(part("gradients") == Approx(4 * adapters));
  CHECK(part("master_weights") + part("momentum") + part("variance") == Approx(12 * adapters));
  training.parallelism->format = MatrixFormat::fp8;
  CHECK(part("weights") == Approx(weights + 2 * adapters));
  // QLoRA: 12 h^2 elements of each block in 4.127 bits, all others in 16.
  ModelShape narrow = *training.model;
  narrow.adapters->frozen_bits = 4.127;
  training.model = std::make_shared<const ModelShape>(narrow);
  training.parallelism->format = MatrixFormat::half;
  const double matrices = 48 * 12 * 1600. * 1600;
  CHECK(part("weights") == Approx(4.127 / 8 * matrices + 2 * (weights - matrices) + 2 * adapters));
}

// Mixtral 8x7B on one GPU, T = 1,024 tokens of h = 4,096, two of 8 experts of f = 14,336 each.
// Bytes per row: 2 h (input) + 6 f (gated, in one kernel).
TrainingPlan training_of_experts(ExpertUse use) {
  TrainingPlan training = layout_training({});
  training.model = std::make_shared<const ModelShape>(load_model("mixtral-8x7b", {}));
  training.batch = {8, 1, 8};
  training.parallelism->experts = use;
  return training;
}

TEST_CASE(
    "layout memory: experts keep the rows that they compute, with a capacity or an imbalance") {
  const double row = 32 * (2 * 4096. + 6 * 14336.), rows = 2 * 1024;
  const double even = activation_part(training_of_experts({}));
  CHECK(activation_part(training_of_experts({.capacity_factor = 2})) - even == Approx(rows * row));
  // Imbalance counts if ranks share the experts, not if one rank has all.
  CHECK(activation_part(training_of_experts({.imbalance = {1.5, {}}})) == even);
  TrainingPlan shared = training_of_experts({.imbalance = {1.5, {}}});
  shared.gpus = shared.parallelism->layout.dp = shared.parallelism->layout.ep = 2;
  shared.batch.train *= 2;
  CHECK(activation_part(shared) - even == Approx(rows / 2 * row));
  // Masks and weights of 1,024 tokens x 2,048 expert slots in 16 bits, and the outputs of the
  // experts.
  const double one_hot =
      activation_part(training_of_experts({.capacity_factor = 1, .routing = Routing::one_hot}));
  CHECK(one_hot - even == Approx(32 * (2 * 2 * 1024 * rows + 2 * rows * 4096)));
}

TEST_CASE("layout memory: recomputed experts keep the input of the router") {
  TrainingPlan training = training_of_experts({.capacity_factor = 1.25});
  const double all = activation_part(training);
  training.parallelism->repeated = Repeated::experts;
  const double rows = 1.25 * 2 * 1024;
  CHECK(all - activation_part(training) ==
        Approx(32 * (rows * (2 * 4096. + 6 * 14336.) - 2 * 1024 * 4096)));
}

// Each of five ranks keeps a fifth of the inputs, 48 x 2 s h bytes.
TEST_CASE("layout memory: checkpoints divided over ranks") {
  TrainingPlan training = layout_training({.tp = 5});
  training.parallelism->recompute = parallel::Recompute::full;
  const double whole = activation_part(training);
  training.parallelism->partitions_activations = true;
  CHECK(whole - activation_part(training) == Approx(48 * 2 * 1024 * 1600. * 4 / 5));
}

}  // namespace
}  // namespace lambcast
