// Properties of all three optimizers: gradients in 16 bits, overflow, saved state.
#include "kernels/nccl/step.h"

#include "kernels/emulated_world/onebit_adam.h"
#include "kernels/nccl/node_test.h"
#include "kernels/nccl/onebit_adam.h"
#include "kernels/nccl/onebit_lamb.h"
#include "kernels/nccl/zero_one_adam.h"
#include "kernels/reference/half.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

// Options with phases so short that twelve steps include each kind of step.
OnebitLambOptions options_of(OnebitLamb*) {
  OnebitLambOptions options;
  options.lamb = {.lr = 0.01, .weight_decay = 0.01};
  options.freeze_step = 4;
  return options;
}
OnebitAdamOptions options_of(OnebitAdam*) {
  OnebitAdamOptions options;
  options.adam = {.lr = 0.01, .weight_decay = 0.01};
  options.freeze_step = 4;
  return options;
}
ZeroOneAdamOptions options_of(ZeroOneAdam*) {
  ZeroOneAdamOptions options;
  options.adam = {.lr = 0.01, .weight_decay = 0.01};
  options.var_freeze_step = 5;
  options.var_update_scaler = 2;
  options.local_step_scaler = 2;
  options.local_step_clipper = 2;
  return options;
}
template <typename Optimizer>
Node<Optimizer> node_of(const emulated::World& world) {
  return Node<Optimizer>(world, options_of(static_cast<Optimizer*>(nullptr)));
}

// Returns gradients in 16 bits, multiplied by the loss scale.
std::vector<std::vector<std::uint16_t>> in_half(const std::vector<std::vector<float>>& gradients,
                                                double loss_scale, HalfFormat format) {
  std::vector<std::vector<std::uint16_t>> sixteen_bit;
  for (const auto& gradient : gradients) {
    sixteen_bit.emplace_back();
    for (const float g : gradient) {
      sixteen_bit.back().push_back(
          reference::to_half(static_cast<float>(loss_scale * double(g)), format));
    }
  }
  return sixteen_bit;
}

template <typename Optimizer>
void skips_what_overflows() {
  const emulated::World two = aligned_world(2);
  auto node = node_of<Optimizer>(two);
  for (unsigned k = 0; k < 12; ++k) {
    auto bad = random_gradients(two, k);
    bad[k % 2][100] = k % 3 == 0 ? NAN : INFINITY;
    const auto before = node.optimizers[0].save();
    CHECK(node.step(bad) == Step::skipped);
    CHECK((node.optimizers[0].save() == before));
    CHECK(node.optimizers[1].steps() == int(k));
    CHECK(node.step(random_gradients(two, k)) != Step::skipped);
  }
  for (const float p : node.weights(1)) REQUIRE(std::isfinite(p));
}

template <typename Optimizer>
void goes_on_from_what_was_saved() {
  emulated::World two = aligned_world(2);
  two.mask.assign(two.tensors.elements(), 1.0f);
  two.mask[7] = 0;
  auto whole = node_of<Optimizer>(two);
  for (unsigned stop = 0; stop < 12; stop += 3) {  // in every stage
    auto other = node_of<Optimizer>(two);
    other.step(random_gradients(two, 77));  // this must leave no trace
    for (std::size_t r = 0; r < 2; ++r) other.optimizers[r].load(whole.optimizers[r].save());
    CHECK(other.optimizers[0].steps() == int(stop));
    for (unsigned k = stop; k < stop + 3; ++k) {
      if (k > stop) {  // the first step uses the saved learning rate
        whole.set_lr(0.01 / (k + 1));
        other.set_lr(0.01 / (k + 1));
      }
      CHECK(whole.step(random_gradients(two, k)) == other.step(random_gradients(two, k)));
    }
    for (std::size_t r = 0; r < 2; ++r) {
      CHECK((other.optimizers[r].save() == whole.optimizers[r].save()));
    }
    CHECK((other.weights(0) == whole.weights(0)));
  }
}

std::string refusal(OnebitAdam& optimizer, std::span<const std::byte> state) {
  const auto before = optimizer.save();
  std::string why;
  try {
    optimizer.load(state);
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    why = error.what();
  }
  CHECK((optimizer.save() == before));
  return why;
}

}  // namespace

TEST_CASE("no optimizer moves when any rank's gradient overflows") {
  NEED_RANKS(2);
  skips_what_overflows<OnebitLamb>();
  skips_what_overflows<OnebitAdam>();
  skips_what_overflows<ZeroOneAdam>();
}

TEST_CASE(
    "a run that is saved, loaded elsewhere and continued has the same bits as one that goes on") {
  NEED_RANKS(2);
  goes_on_from_what_was_saved<OnebitLamb>();
  goes_on_from_what_was_saved<OnebitAdam>();
  goes_on_from_what_was_saved<ZeroOneAdam>();
}

TEST_CASE("state of another version, optimizer, rank or layout is rejected in one line") {
  NEED_RANKS(2);
  emulated::World two = aligned_world(2);
  auto node = node_of<OnebitAdam>(two);
  OnebitAdam& optimizer = node.optimizers[0];
  CHECK(refusal(optimizer, {}) == "saved state: not one of this library");
  CHECK(refusal(optimizer, node.optimizers[1].save()) ==
        "saved state: rank 1 of 2, here rank 0 of 2 is wanted");
  CHECK(refusal(optimizer, node_of<OnebitLamb>(two).optimizers[0].save()) ==
        "saved state: 1-bit LAMB, here 1-bit Adam is wanted");
  CHECK(refusal(optimizer, node_of<OnebitAdam>(aligned_world(1)).optimizers[0].save()) ==
        "saved state: rank 0 of 1, here rank 0 of 2 is wanted");
  auto state = optimizer.save();
  const std::string_view text(reinterpret_cast<const char*>(state.data()), 16);
  CHECK(text == "lambcast state 1");
  auto newer = state;
  newer[15] = std::byte('2');
  CHECK(refusal(optimizer, newer) ==
        "saved state: lambcast state 2, here lambcast state 1 is wanted");
  auto damaged = state;
  damaged[16] = std::byte(7);
  CHECK(refusal(optimizer, damaged) == "saved state: damaged, here lambcast state 1 is wanted");
  const std::size_t bytes = state.size();
  state.pop_back();
  CHECK(refusal(optimizer, state) == "saved state: " + std::to_string(bytes - 1) + " bytes, here " +
                                         std::to_string(bytes) + " are wanted");
  two.tensors =
      tensor_layout(std::vector<std::size_t>{704, 0, 0, 2048, 33});  // the same number of elements
  CHECK(refusal(optimizer, node_of<OnebitAdam>(two).optimizers[0].save())
            .starts_with("saved state: 5 tensors of 2785 elements, cut as "));
  two = aligned_world(2);
  two.quirks.padding = Padding::counted;
  CHECK(refusal(optimizer, node_of<OnebitAdam>(two).optimizers[0].save()) ==
        "saved state: padding counted, here padding excluded is wanted");
}

namespace {

void sixteen_bits_agree(HalfFormat format, double loss_scale, double max_norm) {
  emulated::World two = aligned_world(2);
  two.loss_scale = loss_scale;
  two.gradient_clipping = max_norm;
  two.quirks.gradient_sum = format == HalfFormat::bf16 ? GradientSum::bfloat16 : GradientSum::half;
  emulated::OnebitAdam cpu =
      emulated::onebit_adam(two, options_of(static_cast<OnebitAdam*>(nullptr)));
  auto node = node_of<OnebitAdam>(two);
  for (unsigned k = 0; k < 4 + test_steps; ++k) {
    auto gradients = random_gradients(two, k);
    const auto sixteen_bit = in_half(gradients, loss_scale, format);
    for (std::size_t r = 0; r < 2;
         ++r) {  // the emulated world gets the values after rounding to 16 bits
      for (std::size_t e = 0; e < gradients[r].size(); ++e) {
        gradients[r][e] = reference::from_half(sixteen_bit[r][e], format) / float(loss_scale);
      }
    }
    const Step did =
        node.step_half(sixteen_bit, {.loss_scale = loss_scale, .max_norm = max_norm}, format);
    CHECK(did == emulated::step(cpu, gradients));
    // NCCL's rounding of partial sums in 16 bits is unknown, so only the emulated device is
    // compared.
    if (emulated_device && did == Step::full && max_norm == 0) {
      CHECK((node.weights(0) == cpu.ranks[0].p));
    }
  }
  const double apart = emulated_device ? 1e-5 : format == HalfFormat::bf16 ? 1e-2 : 1e-3;
  CHECK(relative_distance(node.weights(0), cpu.ranks[0].p) < apart);
  CHECK((node.weights(1) == node.weights(0)));
}

std::vector<std::vector<float>> widened(const std::vector<std::vector<std::uint16_t>>& gradients,
                                        HalfFormat format) {
  std::vector<std::vector<float>> all;
  for (const auto& gradient : gradients) {
    all.emplace_back();
    for (const std::uint16_t g : gradient) all.back().push_back(reference::from_half(g, format));
  }
  return all;
}

// With one rank, the mean over the ranks is exact in 16 bits.
template <typename Optimizer>
void reads_sixteen_bits(bool last_never_freezes) {
  emulated::World one = aligned_world(1);
  if (last_never_freezes) {
    one.non_freeze.assign(one.tensors.tensors(), false);
    one.non_freeze.back() = true;
  }
  for (const HalfFormat format : {HalfFormat::fp16, HalfFormat::bf16}) {
    for (const double max_norm : {0.0, 5.0}) {
      const GradientOptions how{.loss_scale = 64, .max_norm = max_norm};
      auto narrow = node_of<Optimizer>(one), wide = node_of<Optimizer>(one);
      for (unsigned k = 0; k < 12; ++k) {
        const auto half = in_half(random_gradients(one, k), how.loss_scale, format);
        const Step did = narrow.step_half(half, how, format, last_never_freezes);
        CHECK(did == wide.step(widened(half, format), how));
        CHECK((narrow.weights(0) == wide.weights(0)));
      }
    }
  }
}

// After every kind of step, the copy of the weights equals the rounded fp32 weights.
template <typename Optimizer>
void keeps_a_copy(HalfFormat format) {
  const emulated::World two = aligned_world(2);
  auto node = node_of<Optimizer>(two);
  std::vector<DeviceBuffer<std::uint16_t>> copies;
  node.gpus.on_each([&](int r) {
    copies.emplace_back(two.tensors.elements());
    require(node.optimizers[std::size_t(r)].keep_copy({copies.back().data(), format}, nullptr),
            "keep_copy");
  });
  for (unsigned k = 0; k < 12; ++k) {
    for (std::size_t r = 0; r < 2; ++r) {
      const auto copy = copies[r].to_host();
      const auto masters = node.weights(int(r));
      for (std::size_t e = 0; e < copy.size(); ++e) {
        REQUIRE(copy[e] == reference::to_half(masters[e], format));
      }
    }
    node.step(random_gradients(two, k));
  }
}

}  // namespace

TEST_CASE("gradients in fp16 are averaged, unscaled and clipped as in the emulated world") {
  NEED_RANKS(2);
  for (const double max_norm : {0.0, 5.0}) sixteen_bits_agree(HalfFormat::fp16, 1024, max_norm);
}

TEST_CASE("gradients in bf16 are averaged, unscaled and clipped as in the emulated world") {
  NEED_RANKS(2);
  for (const double max_norm : {0.0, 5.0}) sixteen_bits_agree(HalfFormat::bf16, 1, max_norm);
}

TEST_CASE(
    "a step on 16-bit gradients has the bits of one on their fp32 values, without fp32 memory") {
  NEED_GPUS(1);
  for (const bool last_never_freezes : {false, true}) {
    reads_sixteen_bits<OnebitLamb>(last_never_freezes);
    reads_sixteen_bits<OnebitAdam>(last_never_freezes);
  }
  reads_sixteen_bits<ZeroOneAdam>(false);
}

TEST_CASE("gradients in 16 bits need fp32 memory if tensors never freeze, and the error says so") {
  NEED_GPUS(1);
  emulated::World one = aligned_world(1);
  one.non_freeze.assign(one.tensors.tensors(), false);
  one.non_freeze.back() = true;
  auto node = node_of<OnebitAdam>(one);
  const auto half = in_half(random_gradients(one, 0), 1, HalfFormat::fp16);
  for (int warm_up = 0; warm_up < 4; ++warm_up) CHECK(node.step_half(half, {}) == Step::full);
  CHECK_THROWS_WITH(node.step_half(half, {}),
                    "gradients in 16 bits with tensors that never freeze need fp32 memory too");
}

TEST_CASE("weights in 16 bits follow their fp32 weights through every kind of step") {
  NEED_RANKS(2);
  for (const HalfFormat format : {HalfFormat::fp16, HalfFormat::bf16}) {
    keeps_a_copy<OnebitLamb>(format);
    keeps_a_copy<OnebitAdam>(format);
    keeps_a_copy<ZeroOneAdam>(format);
  }
}

#ifndef LAMBCAST_CUDA_ON_CPU
namespace {

// A compressed step of one rank, captured on a separate stream, because the default one cannot be
// captured.
class CapturedGraph {
 public:
  CapturedGraph(Rank<OnebitLamb>& rank, const GradientOptions& how) {
    require(cudaStreamCreate(&stream_), "cudaStreamCreate");
    rank.stream = stream_;
    require(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture");
    CHECK(step_of(load_nccl(), std::span<const Rank<OnebitLamb>>(&rank, 1), how) == Step::onebit);
    require(cudaStreamEndCapture(stream_, &graph_), "end of capture");
    require(cudaGraphInstantiate(&ready_, graph_, 0), "cudaGraphInstantiate");
  }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  ~CapturedGraph() {
    cudaGraphExecDestroy(ready_);
    cudaGraphDestroy(graph_);
    cudaStreamDestroy(stream_);
  }
  void launch() const { require(cudaGraphLaunch(ready_, stream_), "cudaGraphLaunch"); }

 private:
  cudaStream_t stream_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t ready_ = nullptr;
};

}  // namespace

TEST_CASE("a CUDA graph replays a step on fp16 gradients with the factor of each replay") {
  NEED_GPUS(1);
  const emulated::World one = aligned_world(1);
  auto eager = node_of<OnebitLamb>(one), replayed = node_of<OnebitLamb>(one);
  const GradientOptions how{.loss_scale = 64, .max_norm = 0.5, .check_overflow = false};
  const auto gradients = [&](unsigned k) {
    // Norms increase, so that a replay with the factor of another step would differ.
    auto of_step = random_gradients(one, k);
    for (float& g : of_step[0]) g *= static_cast<float>(k + 1);
    return in_half(of_step, how.loss_scale, HalfFormat::fp16);
  };
  for (unsigned k = 0; k < 5; ++k) {  // beyond the freeze
    eager.step_half(gradients(k), how);
    replayed.step_half(gradients(k), how);
  }
  DeviceBuffer<std::uint16_t> gradient = upload(gradients(5)[0]);
  Rank<OnebitLamb> rank = replayed.rank(0, nullptr);
  rank.half_gradient = {gradient.data(), HalfFormat::fp16};
  const auto before = replayed.optimizers[0].save();
  const CapturedGraph graph(rank, how);
  replayed.optimizers[0].load(before);
  for (unsigned k = 5; k < 10; ++k) {
    gradient.assign(gradients(k)[0]);
    graph.launch();
    require(replayed.optimizers[0].count_replayed_step(rank.stream), "count_replayed_step");
    eager.step_half(gradients(k), how);
    CHECK((replayed.weights(0) == eager.weights(0)));
  }
}

TEST_CASE("a CUDA graph replays a compressed step with the learning rate that is set in between") {
  NEED_GPUS(1);
  const emulated::World one = aligned_world(1);
  auto eager = node_of<OnebitLamb>(one), replayed = node_of<OnebitLamb>(one);
  for (unsigned k = 0; k < 5; ++k) {  // beyond the freeze
    eager.step(random_gradients(one, k), {.check_overflow = false});
    replayed.step(random_gradients(one, k), {.check_overflow = false});
  }
  DeviceBuffer<float> gradient = upload(random_gradients(one, 5)[0]);
  Rank<OnebitLamb> rank = replayed.rank(0, gradient.data());
  const auto before = replayed.optimizers[0].save();
  const CapturedGraph graph(rank, {.check_overflow = false});
  replayed.optimizers[0].load(before);
  for (unsigned k = 5; k < 10; ++k) {
    gradient.assign(random_gradients(one, k)[0]);
    replayed.set_lr(0.01 / (k + 1));
    graph.launch();
    require(replayed.optimizers[0].count_replayed_step(rank.stream), "count_replayed_step");
    eager.set_lr(0.01 / (k + 1));
    eager.step(random_gradients(one, k), {.check_overflow = false});
    CHECK((replayed.weights(0) == eager.weights(0)));
  }
}
#endif

TEST_CASE("a learning rate set between replays of a step takes effect") {
  NEED_GPUS(1);
  const emulated::World one = aligned_world(1);
  auto node = node_of<OnebitLamb>(one);
  const auto gradient = upload(random_gradients(one, 0)[0]);
  OnebitLamb& optimizer = node.optimizers[0];
  node.set_lr(0);
  require(optimizer.full_step(gradient.data(), nullptr), "full step");
  CHECK((node.weights(0) == one.initial));
  node.set_lr(0.01);
  require(optimizer.full_step(gradient.data(), nullptr), "full step");
  CHECK((node.weights(0) != one.initial));
  require(optimizer.count_replayed_step(nullptr), "count_replayed_step");
  CHECK(optimizer.steps() == 3);
  auto policy = node_of<ZeroOneAdam>(one);
  ZeroOneAdam& other = policy.optimizers[0];
  std::vector<Step> kinds;
  while (!other.variance_is_frozen()) {
    kinds.push_back(other.next());
    require(other.count_replayed_step(nullptr), "count_replayed_step");
  }
  CHECK(kinds == std::vector{Step::full, Step::full, Step::onebit, Step::full, Step::onebit});
}
