#include "models/training/plan/weight_sharing.h"

#include <catch2/catch.hpp>

#include "models/training/price/pass_price.h"
#include "models/training/run/layout_case.h"

namespace lambcast {
namespace {
using parallel::Sharding;

TrainingPlan sharded(int shard_ranks) {
  TrainingPlan training = layout_training({.dp = 16,
                                           .micro_batches = 1,
                                           .sharding = Sharding::weights,
                                           .framework = FrameworkName::deepspeed});
  training.parallelism->shard_ranks = shard_ranks;
  return training;
}

PipelinePlan passes_of(const TrainingPlan& training) {
  return *plan_step(training, {StepKind::uniform, 1024, 1}).pipeline;
}

// Collectives that nothing overlaps: the vocabulary is gathered once, before a micro batch's
// blocks. After the blocks its gradients are scattered over the shard once, and summed over its
// copies once.
TEST_CASE("weight sharing: a pass is longer by the time of the outer weights' collectives") {
  for (const int shard_ranks : {16, 8, 2}) {
    INFO(shard_ranks);
    const TrainingPlan training = sharded(shard_ranks);
    CollectiveCosts costs;
    const auto alone = [&](const Call& call) {
      return costs
          .cost({training.cluster, call.group, training.network, training.expand}, call.backend,
                call.op, call.bytes, call.algorithm)
          .time;
    };
    const PipelinePlan whole = passes_of(training);
    PipelinePlan inner = whole;
    REQUIRE(inner.outer_weights_gather);
    REQUIRE(inner.outer_gradients_reduce.size() == (shard_ranks < 16 ? 2 : 1));
    Duration reduce;
    for (const Call& call : inner.outer_gradients_reduce) reduce += alone(call);
    const Duration gather = alone(*inner.outer_weights_gather);
    inner.outer_weights_gather.reset();
    inner.outer_gradients_reduce.clear();
    const auto chunk = [&](const PipelinePlan& plan) {
      return price_pipeline(plan, training, costs, End::expected, 0).chunks.at(0);
    };
    const ChunkPrice with = chunk(whole), without = chunk(inner);
    CHECK((with.forward.communication - without.forward.communication).s() == Approx(gather.s()));
    CHECK((with.forward.exposed - without.forward.exposed).s() == Approx(gather.s()));
    CHECK((with.input_gradient.communication - without.input_gradient.communication).s() ==
          Approx(reduce.s()));
    CHECK((with.input_gradient.exposed - without.input_gradient.exposed).s() == Approx(reduce.s()));
  }
}

// GPT-2 XL has 48 blocks of 30.74 million elements, and a head of 80.4 million. Between the passes
// of a block followed by k blocks, 2 x 80.4 + 2 k x 30.74 million elements are used: fewer than 1e9
// up to k = 13. Of 1e9 elements in memory, 80.4 + k x 30.74 million are the head and k = 29 blocks;
// an execution of DeepSpeed's rule, weight by weight, keeps 29.75 blocks.
TEST_CASE("weight sharing: DeepSpeed keeps weights that are used again soon") {
  TrainingPlan training = sharded(16);
  Parallelism& how = *training.parallelism;
  const auto kept = [&](double reuse, double live) {
    how.framework.reuse_elements = reuse;
    how.framework.live_elements = live;
    return kept_blocks(*training.model, how);
  };
  CHECK(kept(1e9, 1) == 14);
  CHECK(kept(1e10, 1) == 48);
  CHECK(kept(1e6, 1) == 0);
  CHECK(kept(0, 1) == 0);
  CHECK(kept(1e6, 1e9) == 29);
  CHECK(kept(3e9, 1e9) == 47);
  CHECK(kept(1e6, 3e9) == 48);
  // Without a prefetch bucket, nothing is gathered ahead.
  how.framework.prefetch_bucket = 1;
  CHECK(kept(1e6, 1e9) == 0);
  CHECK(kept(1e9, 1e9) == 14);
  how.framework.prefetch_bucket = 5e7;
  how.recompute = parallel::Recompute::full;
  CHECK(kept(1e9, 1) == 10);  // 2 x 80.4 + 3 k x 30.74 million are fewer than 1e9 up to k = 9
  CHECK(kept(1e9, 1e9) == 29);
  how.recompute = parallel::Recompute::none;
  // The gathers before the backward pass take time in proportion to the blocks gathered.
  CollectiveCosts costs;
  const auto gathered = [&](double reuse) {
    how.framework.reuse_elements = reuse;
    how.framework.live_elements = 1;
    return price_pipeline(passes_of(training), training, costs, End::expected, 0)
        .chunks.at(0)
        .input_gradient.communication.s();
  };
  const double all = gathered(0), none = gathered(1e10);
  CHECK((all - gathered(1e9)) / (all - none) == Approx(14. / 48));
  how.sharding = Sharding::gradients;
  CHECK(kept(1e9, 1e9) == 0);
}

// GPT-2 XL's vocabulary of 50,257 x 1,600: 2 bytes of each weight are gathered over the shard, its
// gradients are scattered there, and each share is summed over the copies.
TEST_CASE("weight sharing: bytes of the outer weights") {
  const double outer = 50257. * 1600;
  for (const int shard_ranks : {16, 8, 2}) {
    const PipelinePlan plan = passes_of(sharded(shard_ranks));
    CHECK(plan.outer_weights_gather->bytes.value() == Approx(2 * outer));
    CHECK(plan.outer_gradients_reduce[0].op == Op::reduce_scatter);
    CHECK(plan.outer_gradients_reduce[0].group.ranks == shard_ranks);
    CHECK(plan.outer_gradients_reduce[0].bytes.value() == Approx(2 * outer));
    if (shard_ranks == 16) continue;
    CHECK(plan.outer_gradients_reduce[1].op == Op::all_reduce);
    CHECK(plan.outer_gradients_reduce[1].group.ranks == 16 / shard_ranks);
    CHECK(plan.outer_gradients_reduce[1].bytes.value() == Approx(2 * outer / shard_ranks));
  }
}

// ZeRO++: the host's part of a gather, and the kernel that widens int8 (1 byte read, 2 written).
TEST_CASE("weight sharing: weights that came in 8 bits are widened") {
  TrainingPlan training = sharded(16);
  training.parallelism->quantized_weights = true;
  const PipelinePlan plan = passes_of(training);
  CHECK(plan.weights_quantized.value() == Approx((1 + 2) * plan.weights_gather->bytes.value()));
}

// Gathers 1 million weights of two bytes among 8 ranks.
std::vector<StepPart> gathered_by(const Exchange& exchange) {
  Owners owners;
  owners.shards.shard = {8, 8};
  return gather_weights({owners}, parallel::RankParameters{.divided = 1e6}, {}, exchange, "");
}

TEST_CASE("weights gather: 16 bits, or with SDP4Bit changes in 4 bits with a scale per 2,048") {
  const std::vector<StepPart> plain = gathered_by({});
  REQUIRE(plain.size() == 1);
  CHECK(plain.front().name == "all_gather weights");
  CHECK(std::get<Call>(plain.front().work).bytes.value() == 2e6);
  const std::vector<StepPart> coded = gathered_by({Exchange::Kind::sdp4bit});
  REQUIRE(coded.size() == 3);
  CHECK(std::get<Call>(coded[1].work).bytes.value() == 0.5e6 + 4e6 / 2048);
  const auto& code = std::get<KernelWork>(coded[0].work);
  const auto& add = std::get<KernelWork>(coded[2].work);
  CHECK(code.elements == 1e6 / 8);
  CHECK(add.elements == 1e6);
  CHECK(code.passes.bytes_per_element == 2 + 2 + 0.5);
  CHECK(add.passes.bytes_per_element == 0.5 + 2 + 2);
}

TEST_CASE("weights gather: a rank that shares no weights gathers nothing") {
  CHECK(gather_weights({Owners()}, parallel::RankParameters{.divided = 1e6}, {},
                       {Exchange::Kind::sdp4bit}, "")
            .empty());
}

}  // namespace
}  // namespace lambcast
