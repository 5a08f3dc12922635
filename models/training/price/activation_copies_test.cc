#include "models/training/price/activation_copies.h"

#include <catch2/catch.hpp>

#include "models/training/memory/memory.h"
#include "models/training/plan/buffers.h"
#include "models/training/plan/layout_contents.h"
#include "models/training/run/layout_case.h"

namespace lambcast {
namespace {

TrainingPlan training_with(const parallel::ActivationOffload& offload, std::int64_t micro = 4) {
  TrainingPlan training = layout_training({.dp = 8, .micro = micro});
  Parallelism how = *training.parallelism;
  how.offload = offload;
  if (offload.checkpoints) {
    how.recompute = parallel::Recompute::full;
    how.repeated = Repeated::block;
  }
  training.parallelism = how;
  return training;
}

ChunkPrice price_of(const TrainingPlan& training) {
  CollectiveCosts costs;
  return price_pipeline(computation_of(training, training.seq_len), training, costs, End::expected,
                        0)
      .chunks.front();
}

TrainingPlan with_copies_at(TrainingPlan training, double gigabytes_per_second) {
  Device device = *training.device;
  for (auto* rate :
       {&device.pinned_d2h, &device.pinned_h2d, &device.pageable_d2h, &device.pageable_h2d})
    rate->value = Bandwidth(gigabytes_per_second * 1e9);
  training.device = std::make_shared<const Device>(device);
  Cluster cluster = *training.cluster;
  cluster.host_copy = {};
  training.cluster = std::make_shared<const Cluster>(cluster);
  return training;
}

// gpt2-xl: 48 blocks, hidden 1600, n = 4 x 1024 tokens of a micro batch. core_attn and attn_proj
// copy queries, keys, values and context: 2 n (3 + 1) h bytes of each block.
TEST_CASE("activation copies: a pass waits for what does not fit behind its blocks") {
  parallel::ActivationOffload modules;
  modules.modules[static_cast<std::size_t>(parallel::OffloadModule::core_attn)] = true;
  modules.modules[static_cast<std::size_t>(parallel::OffloadModule::attn_proj)] = true;
  const double bytes = 48 * 2 * 4096.0 * 4 * 1600;
  const TrainingPlan without = training_with({});
  const ChunkPrice plain = price_of(without);
  for (const double rate : {1.0, 10.0, 1000.0}) {
    CAPTURE(rate);
    const TrainingPlan training = with_copies_at(training_with(modules), rate);
    const ChunkPrice chunk = price_of(training);
    const double copying = bytes / (rate * 1e9);
    const double out = std::max(0.0, copying - plain.blocks_forward.s());
    const double back = std::max(0.0, copying - plain.blocks_backward.s());
    CHECK(chunk.reads.to_host.s() == Approx(out));
    CHECK(chunk.reads.to_gpu.s() == Approx(back));
    CHECK((chunk.forward.time() - plain.forward.time()).s() == Approx(out).margin(1e-12));
    CHECK((chunk.input_gradient.time() - plain.input_gradient.time()).s() ==
          Approx(back).margin(1e-12));
  }
}

TEST_CASE("activation copies: a share of the modules copies that share of their bytes") {
  parallel::ActivationOffload whole;
  whole.modules[static_cast<std::size_t>(parallel::OffloadModule::mlp_norm)] = true;
  parallel::ActivationOffload half = whole;
  half.share = 0.5;
  const auto copied = [](const parallel::ActivationOffload& offload) {
    const TrainingPlan training = training_with(offload);
    return computation_of(training, training.seq_len).copied_activations.front().value();
  };
  CHECK(copied(whole) == Approx(48 * 2 * 4096.0 * 1600));
  CHECK(copied(half) == Approx(copied(whole) / 2));
}

// DeepSpeed waits for every copy of a checkpoint, 2 n h bytes of each block.
TEST_CASE("activation copies: nothing hides the copies of checkpoints") {
  parallel::ActivationOffload checkpoints;
  checkpoints.checkpoints = true;
  const ChunkPrice chunk = price_of(with_copies_at(training_with(checkpoints), 10));
  CHECK(chunk.reads.to_host.s() == Approx(48 * 2 * 4096.0 * 1600 / 10e9));
  CHECK(chunk.reads.to_gpu == chunk.reads.to_host);
}

// The GPU keeps the other blocks, and copies of two blocks while they are under way.
TEST_CASE("activation copies: the memory of blocks that wait on the host is that of the host") {
  parallel::ActivationOffload blocks;
  blocks.blocks = 12;
  const auto memory = [](const parallel::ActivationOffload& offload) {
    return forecast_memory(training_with(offload));
  };
  const auto kept = [](const MemoryForecast& of) {
    for (const auto& [part, bytes] : of.parts)
      if (part == "activations") return bytes.value();
    return 0.0;
  };
  const TrainingPlan training = training_with({});
  const double block =
      parallel::layer_activations(*training.model, 0, activation_setting(training, 1024))
          .kept.value();
  const MemoryForecast without = memory({}), with = memory(blocks);
  CHECK(kept(without) - kept(with) == Approx((12 - 2) * block));
  CHECK(with.host.value() == Approx(12 * block * 8));
  CHECK(without.host == Bytes());
}

}  // namespace
}  // namespace lambcast
