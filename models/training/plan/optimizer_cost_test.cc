#include "models/training/plan/optimizer_cost.h"

#include <catch2/catch.hpp>
#include <string>
#include <variant>

#include "models/training/memory/memory.h"
#include "models/training/plan/step_plan.h"
#include "models/training/run/training_case.h"

namespace lambcast {
namespace {

double waits(const Passes& passes, int tensors) {
  return passes.syncs + passes.syncs_per_tensor * tensors;
}

TEST_CASE(
    "optimizer cost: bytes and waits of DeepSpeed's optimizers match those counted in its steps") {
  const auto step = [](OptimizerType type, StepKind kind) {
    return update_passes(type, kind, Kernels::deepspeed);
  };
  const Passes warmup = step(OptimizerType::onebit_lamb, StepKind::warmup);
  CHECK(warmup.bytes_per_element == 132);
  CHECK(waits(warmup, 46) == 3 * 46);
  const Passes compression = step(OptimizerType::onebit_lamb, StepKind::compression);
  CHECK(compression.bytes_per_element == 216);
  CHECK(waits(compression, 46) == 2 * 46);  // with weight decay
  CHECK(step(OptimizerType::zero_one_adam, StepKind::round).bytes_per_element == 88);
  CHECK(step(OptimizerType::zero_one_adam, StepKind::compression).bytes_per_element == 232);
  const auto wrapped = [](Wrapper wrapper, OptimizerType type, const Engine& engine) {
    return wrapper_passes(wrapper, type, Kernels::deepspeed, engine);
  };
  const Engine newest, oldest{false, false};
  const Passes adam = wrapped(Wrapper::fp16, OptimizerType::adam, newest);
  CHECK(adam.bytes_per_element == 41.9);
  CHECK(waits(adam, 46) == 51);
  CHECK(wrapped(Wrapper::fp16_unfused, OptimizerType::onebit_lamb, newest).bytes_per_element == 40);
  const Passes before = wrapped(Wrapper::fp16, OptimizerType::adam, oldest);
  CHECK(before.bytes_per_element == Approx(31.9));
  CHECK(waits(before, 46) == 5);
  for (const int ranks : {2, 8, 64}) {
    const CompressionPasses parts =
        compression_passes(OptimizerType::onebit_adam, Backend::nccl, Kernels::deepspeed, ranks);
    CHECK(parts.worker.bytes_per_element + parts.server.bytes_per_element +
              parts.decode.bytes_per_element ==
          Approx(172 + 100.0 / ranks));
  }
}

// Only weight decay needs wd * p (8) and its addition (12). 1-bit LAMB then also computes the
// momentum's share of the update, 8 + 4 and a wait (deepspeed/runtime/fp16/onebit/lamb.py).
TEST_CASE(
    "optimizer cost: without weight decay unfused optimizers move fewer bytes and wait less") {
  const auto step = [](OptimizerType type, StepKind kind, bool decays,
                       Kernels kernels = Kernels::deepspeed) {
    const double share = decays ? 1 : 0;
    return update_passes(type, kind, kernels, {share, share});
  };
  const Passes compression = step(OptimizerType::onebit_lamb, StepKind::compression, false);
  CHECK(compression.bytes_per_element == 216 - 32);
  CHECK(waits(compression, 398) == 398);
  const Passes warmup = step(OptimizerType::onebit_lamb, StepKind::warmup, false);
  CHECK(warmup.bytes_per_element == 132 - 20);
  CHECK(waits(warmup, 46) == 3 * 46);
  const auto saved = [&](OptimizerType type, StepKind kind, Kernels kernels) {
    const Passes with = step(type, kind, true, kernels), none = step(type, kind, false, kernels);
    CHECK(with.launches_per_tensor - none.launches_per_tensor ==
          (with.bytes_per_element > none.bytes_per_element ? 2 : 0));
    return with.bytes_per_element - none.bytes_per_element;
  };
  for (const StepKind kind : {StepKind::warmup, StepKind::compression})
    CHECK(saved(OptimizerType::onebit_adam, kind, Kernels::deepspeed) == 20);
  for (const StepKind kind :
       {StepKind::warmup, StepKind::compression, StepKind::silent, StepKind::round})
    CHECK(saved(OptimizerType::zero_one_adam, kind, Kernels::deepspeed) == 20);
  CHECK(saved(OptimizerType::adam, StepKind::uniform, Kernels::unfused_adam) == 20);
  for (const OptimizerModel* optimizer : optimizer_models())
    if (optimizer->in_kernels)
      CHECK(saved(optimizer->type, StepKind::uniform, Kernels::fused) == 0);
}

TEST_CASE("optimizer cost: biases and norms are a separate group without decay") {
  const ModelShape bert = load_model("bert-large");
  double matrices = 0, elements = 0;
  for (const Tensor& tensor : bert.tensors) {
    if (!tensor.optimized || group_of(bert, tensor) == "no_decay") continue;
    matrices += 1;
    elements += static_cast<double>(tensor.elements);
  }
  const auto all = static_cast<double>(optimized_tensor_count(bert));
  CHECK(matrices < all / 2);
  const std::vector<GroupSize> groups = optimizer_groups(bert);
  const DecayingShare each = decaying_share(groups, true, false);
  CHECK(each.tensors == Approx(matrices / all));
  CHECK(each.elements == Approx(elements / static_cast<double>(optimized_parameters(bert))));
  CHECK(each.elements > 0.99);
  const DecayingShare flat = decaying_share(groups, true, true);
  CHECK(flat.elements == each.elements);
  CHECK(flat.tensors ==
        Approx(2. / 3));  // the groups decay and positions have decay, no_decay has none
  const DecayingShare none = decaying_share(groups, false, false);
  CHECK(none.elements + none.tensors == 0);
  const Passes compression =
      update_passes(OptimizerType::onebit_lamb, StepKind::compression, Kernels::deepspeed, each);
  CHECK(waits(compression, static_cast<int>(all)) == Approx(all + matrices));
  CHECK(compression.launches_per_tensor * all == Approx(22 * all + 6 * matrices));
  CHECK(compression.bytes_per_element == Approx(216 - 32 * (1 - each.elements)));
}

TEST_CASE(
    "optimizer cost: clipping bf16 gradients reads and writes them, with one launch per tensor") {
  const Passes clips = bf16_gradient_passes(true), keeps = bf16_gradient_passes(false);
  CHECK(keeps.bytes_per_element == 4 + 4 + 2);
  CHECK(clips.bytes_per_element - keeps.bytes_per_element == 8);
  CHECK(keeps.launches_per_tensor == 1);
  CHECK(clips.launches_per_tensor == 2);
}

TEST_CASE(
    "optimizer cost: Lion has one state and two thirds of Adam's traffic, and no fused wrapper") {
  const TrainingPlan lion = training_of({OptimizerType::lion, 16});
  const TrainingPlan adam = training_of({OptimizerType::adam, 16});
  CHECK(lion.wrapper() == Wrapper::fp16_unfused);
  CHECK(adam.wrapper() == Wrapper::fp16);
  const auto bytes = [](OptimizerType type) {
    return update_passes(type, StepKind::uniform, Kernels::deepspeed).bytes_per_element;
  };
  CHECK(bytes(OptimizerType::lion) == 20);
  CHECK(bytes(OptimizerType::adam) == 28);
  const double elements = static_cast<double>(optimized_parameters(*lion.model));
  CHECK((forecast_memory(adam).peak - forecast_memory(lion).peak).value() ==
        Approx(4 * elements).epsilon(1e-6));
}

// Launches and waits of a kernel of DeepSpeed's step, which the host handles.
struct Host {
  double launches = 0, waits = 0;
};
Host host_of(const TrainingPlan& training, const std::string& kernel) {
  for (const PlanOp& op : plan_step(training, {StepKind::uniform, training.seq_len, 1}).ops) {
    const auto* const work = std::get_if<KernelWork>(&op.work);
    if (work == nullptr || op.name != kernel) continue;
    const Passes& of = work->passes;
    return {of.launches + of.launches_per_tensor * work->tensors,
            of.syncs + of.syncs_per_tensor * work->tensors};
  }
  FAIL(kernel << " is in no step");
  return {};
}

TEST_CASE("optimizer cost: optimizers that DeepSpeed does not flatten get every tensor") {
  struct Row {
    OptimizerType type;
    double launches, waits;  // launches and waits of the update
  };
  const double tensors = 398;
  for (const Row& row : {Row{OptimizerType::adafactor, 22 * tensors, 0},
                         {OptimizerType::came, 40 * tensors, 0},
                         {OptimizerType::galore_adamw8bit, 14 * tensors, tensors},
                         {OptimizerType::distributed_lamb, 20 * tensors, tensors},
                         {OptimizerType::lars, 3, 0},
                         {OptimizerType::lion, 1, 0}}) {
    const TrainingPlan training = training_of({row.type, 16, "hgx-h100-ndr"});
    REQUIRE(optimized_tensor_count(*training.model) == 398);
    INFO(name_of(row.type));
    CHECK(training.wrapper() == Wrapper::fp16_unfused);
    CHECK(host_of(training, "optimizer").launches == row.launches);
    CHECK(host_of(training, "optimizer").waits == row.waits);
    // FP16_UnfusedOptimizer wraps every optimizer in the same way.
    CHECK(wrapper_passes(training.wrapper(), row.type, Kernels::deepspeed, {}).bytes_per_element ==
          40);
    CHECK(host_of(training, "unscale, clip and copy").launches == 9 * tensors);
    CHECK(host_of(training, "unscale, clip and copy").waits == 7 + tensors);
  }
  // The wrapper works on every tensor; fused kernels do not avoid that.
  const TrainingPlan flat = training_of({OptimizerType::adam, 16, "hgx-h100-ndr"});
  CHECK(host_of(flat, "optimizer").launches == 1);
  CHECK(host_of(flat, "unscale, clip and copy").waits == 5 + tensors);
}

TEST_CASE("optimizer cost: fused steps move what their kernels move, and the copy in 16 bits") {
  // Bytes of the update, and of the work around it: norm 2, unscaled copy 6, and 6 more if the
  // update does not write the 16-bit copy.
  struct Row {
    OptimizerType type;
    double update, around;
  };
  for (const Row& row : {Row{OptimizerType::adafactor, 24.5, 8 + 6},
                         {OptimizerType::came, 32.5, 8 + 6},
                         {OptimizerType::galore_adamw8bit, 4.5 + 10.5, 8},
                         {OptimizerType::lars, 8 + 22, 8},
                         {OptimizerType::lamb, 42, 8},
                         {OptimizerType::lion, 22, 8},
                         {OptimizerType::adam, 30, 8}}) {
    TrainingPlan training = training_of({row.type, 16});
    training.kernels = Kernels::fused;
    INFO(name_of(row.type));
    const auto around =
        wrapper_passes(training.wrapper(), row.type, Kernels::fused, training.recipe.engine);
    CHECK(update_passes(row.type, StepKind::uniform, Kernels::fused).bytes_per_element ==
          row.update);
    CHECK(around.bytes_per_element == row.around);
    // Two launches for the norm, one for the unscaled copy, and one for the copy in 16 bits.
    CHECK(around.launches == (row.around > 8 ? 4 : 3));
    CHECK(host_of(training, "optimizer").waits == 0);
  }
  TrainingPlan lion = training_of({OptimizerType::lion, 16});
  const Duration deepspeed = metrics_of(lion, StepKind::uniform).optimizer;
  lion.kernels = Kernels::fused;
  CHECK(host_of(lion, "unscale, clip and copy").waits == 1);
  CHECK(metrics_of(lion, StepKind::uniform).optimizer < deepspeed);
  // SGD has no fused kernel.
  TrainingPlan sgd = training_of({OptimizerType::sgd, 16});
  const Duration plain = metrics_of(sgd, StepKind::uniform).optimizer;
  sgd.kernels = Kernels::fused;
  CHECK(metrics_of(sgd, StepKind::uniform).optimizer == plain);
}

TEST_CASE("optimizer cost: which wrappers check all ranks for overflow, with a barrier after it") {
  const auto collectives = [](OptimizerType type, const Engine& engine) {
    TrainingPlan training = training_of({type, 16});
    training.recipe.engine = engine;
    return metrics_of(training, StepKind::uniform).num_collectives;
  };
  const Engine newest;
  CHECK(collectives(OptimizerType::adam, newest) == 1);
  CHECK(collectives(OptimizerType::lamb, newest) == 3);  // the flag and its barrier
  CHECK(collectives(OptimizerType::adam, {false, false}) == 3);
  TrainingPlan fused = training_of({OptimizerType::lamb, 16});
  fused.kernels = Kernels::fused;
  CHECK(metrics_of(fused, StepKind::uniform).num_collectives == 1);
  // MPI scatters signs and scales in one call. On the host a barrier follows each of the three
  // buffers.
  TrainingPlan mpi = training_of({OptimizerType::onebit_adam, 16});
  const auto of_backend = [&](Backend backend) {
    mpi.recipe.backend = backend;
    return metrics_of(mpi, StepKind::compression).num_collectives;
  };
  CHECK(of_backend(Backend::nccl) == 13);
  CHECK(of_backend(Backend::mpi_device) == 10);
  CHECK(of_backend(Backend::mpi_host) == 13);
}

}  // namespace
}  // namespace lambcast
