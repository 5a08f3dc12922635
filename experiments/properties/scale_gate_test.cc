// Gate over the shipped presets: computation grows with the model and with the micro batch.
//
// With c(n) the time of forward and backward of a model of n blocks, c(2 n) - c(n) is the time of n
// blocks without embedding and head. The next n blocks must take as long.
//
// CI forecasts a sample. To forecast all:
//   build/experiments/preset_scale_test "[long]"
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "experiments/output/judgement.h"
#include "experiments/scenario/scenario_case.h"
#include "models/device/device.h"
#include "models/shape/load.h"
#include "models/training/run/forecast.h"
#include "topologies/cluster.h"

namespace lambcast {
namespace {

constexpr double most_off = 0.1;

// Layouts to test on one node for each framework; empty: the model is not divided.
const std::vector<WhatIf>& scale_layouts() {
  static const std::vector<WhatIf> layouts{
      {},
      {{"framework", "deepspeed"}, {"zero_stage", "3"}},
      {{"framework", "megatron"}, {"tp", "2"}},
      {{"framework", "colossalai"}, {"tp", "2"}},
      {{"framework", "torchtitan"}, {"tp", "2"}},
      {{"framework", "pytorch"}},
  };
  return layouts;
}

WhatIf scale_asked(const std::string& model, const std::string& cluster, const WhatIf& layout) {
  const bool divided = layout.contains("tp");
  return with(layout, {{"model", model},
                       {"cluster", cluster},
                       {"gpus", divided ? "2" : "1"},
                       {"optimizer", "adamw"},
                       {"micro_batch", "8"},
                       {"grad_accum", "1"},
                       {"steps", "1"}});
}

// Returns the time of forward and backward in microseconds; nothing if the framework rejects the
// layout.
std::optional<double> scale_compute(const WhatIf& what_if, Catalog& catalog) {
  try {
    CollectiveCosts costs;
    const StepForecast step =
        forecast_alone(resolve(what_if, catalog).training, costs).steps.front();
    return step.forward_us + step.backward_us;
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    return {};
  }
}

WhatIf of_layers(const WhatIf& asked, std::int64_t layers) {
  return with({{"model.layers", fmt::format("{}", layers)}}, asked);
}

// Returns the number of blocks of a model that states it as one number; 0 for other models.
std::int64_t layers_of(const std::string& model) {
  const ModelShape& shape = model_preset(model);
  return shape.pyramid.empty() && !shape.decoder && shape.hidden > 0 ? shape.layers : 0;
}

int check_layers(const WhatIf& asked, std::int64_t layers, Catalog& catalog) {
  const auto once = scale_compute(asked, catalog);
  const auto twice = scale_compute(of_layers(asked, 2 * layers), catalog);
  const auto four_times = scale_compute(of_layers(asked, 4 * layers), catalog);
  if (!once || !twice || !four_times) return 0;
  const double blocks = *twice - *once;
  CHECK(std::abs((*four_times - *twice) / (2 * blocks) - 1) < most_off);
  // The remaining time is that of embedding and head; by FLOPs it is a quarter for gpt2, less for
  // other models.
  CHECK(blocks > 0.5 * *once);
  CHECK(blocks < (1 + most_off) * *once);
  return 1;
}

// Forward FLOPs of a batch of images that fills the largest GPU: 1,000 images of ResNet-50.
constexpr double full_flops = 8e12;

// Returns the least micro batch, a power of two, that fills the GPU. A product of the block's
// narrowest matrix then has 10 tiles of 256 x 128 per multiprocessor, so the last wave, which may
// be almost empty, takes at most a tenth of the time. Experts divide the rows.
std::int64_t full_micro_batch(const ModelShape& model, const Device& device) {
  if (model.default_seq_len == 0)
    return static_cast<std::int64_t>(
        std::bit_ceil(static_cast<std::uint64_t>(full_flops / forward_flops(model, 0).value())));
  const double routed = model.experts > 0 ? static_cast<double>(model.experts) /
                                                static_cast<double>(model.experts_per_token)
                                          : 1;
  const double columns = std::ceil(static_cast<double>(model.hidden) / 128);
  const double rows = 256 * 10 * device.rates->multiprocessors / columns * routed;
  const auto tokens = static_cast<double>(model.default_seq_len);
  return std::int64_t{1} << static_cast<int>(std::max(0.0, std::ceil(std::log2(rows / tokens))));
}

// DeepSpeed dispatches tokens to experts by products with one-hot tensors
// (models/training/price/one_hot_dispatch.h), which grow with the square of the tokens. A pass
// takes t + q: t grows with the micro batch, q with its square.
bool carries_one_hot(const ModelShape& model, const WhatIf& asked) {
  const auto framework = asked.find("framework");
  return model.experts > 0 && (framework == asked.end() || framework->second == "deepspeed");
}

int check_micro_batch(const WhatIf& asked, std::int64_t full, bool squared, Catalog& catalog) {
  INFO("micro batch " << full);
  std::array<double, 3> times{};  // for one, two and four times the micro batch
  for (std::size_t i = 0; i < times.size(); ++i) {
    const std::string micro_batch = fmt::format("{}", full << i);
    const auto time = scale_compute(with({{"micro_batch", micro_batch}}, asked), catalog);
    if (!time) return 0;
    times[i] = *time;
  }
  // The times are t + q, 2 t + 4 q and 4 t + 16 q. The excess over twice the previous time is 2 q,
  // then 8 q.
  const double off = squared ? (times[2] - 2 * times[1]) / (4 * (times[1] - 2 * times[0])) - 1
                             : times[1] / (2 * times[0]) - 1;
  CHECK(std::abs(off) < most_off);
  return 1;
}

// Runs `check` for every `stride`-th combination and returns how many were forecast.
template <typename Check>
int walk_presets(std::size_t stride, Check check) {
  Catalog catalog;
  std::size_t at = 0;
  int forecast = 0;
  for (const std::string& cluster : cluster_names())
    for (const std::string& model : model_presets())
      for (const WhatIf& layout : scale_layouts()) {
        if (at++ % stride != 0) continue;
        INFO(model << " on " << cluster << ", layout "
                   << (layout.empty() ? "none" : layout.at("framework")));
        forecast += check(scale_asked(model, cluster, layout), model, cluster, catalog);
      }
  return forecast;
}

int walk_layers(std::size_t stride) {
  return walk_presets(stride, [](const WhatIf& asked, const std::string& model, const std::string&,
                                 Catalog& catalog) {
    const std::int64_t layers = layers_of(model);
    return layers > 0 ? check_layers(asked, layers, catalog) : 0;
  });
}

int walk_micro_batches(std::size_t stride) {
  return walk_presets(stride, [](const WhatIf& asked, const std::string& model,
                                 const std::string& cluster, Catalog& catalog) {
    const ModelShape& shape = model_preset(model);
    const Device device = load_device(load_cluster(cluster, {}).device);
    return check_micro_batch(asked, full_micro_batch(shape, device), carries_one_hot(shape, asked),
                             catalog);
  });
}

TEST_CASE("scale gate: twice the layers take twice the time of the blocks") {
  CHECK(walk_layers(97) > 40);
}

TEST_CASE("scale gate: twice the micro batch takes twice the time on a full GPU") {
  CHECK(walk_micro_batches(97) > 40);
}

// With 24 layers a ring reduces a bucket, with 25 layers a tree, which is faster here.
TEST_CASE("scale gate: a finding names the algorithm if a deeper model takes a shorter step") {
  Catalog catalog;
  CollectiveCosts costs;
  const auto of = [&](const char* layers) {
    const Scenario scenario = resolve(with({{"gpus", "256"},
                                            {"optimizer", "lamb"},
                                            {"overlap", "ddp"},
                                            {"micro_batch", "1"},
                                            {"model.layers", layers}},
                                           scale_asked("bert-large", "commodity-100gbe", {})),
                                      catalog);
    const Forecast result = forecast(scenario.training, costs);
    return std::pair(result.steps.front(), judgement_of(scenario, result).findings);
  };
  const auto [shallow, tips] = of("24");
  const auto [deep, others] = of("25");
  CHECK(deep.forward_us + deep.backward_us > shallow.forward_us + shallow.backward_us);
  const bool named = std::any_of(tips.begin(), tips.end(), [](const Finding& finding) {
    return finding.code == "algorithm-tips";
  });
  CHECK((named || deep.step_time_us > shallow.step_time_us));
}

TEST_CASE("scale gate: every preset, layers", "[.long]") { CHECK(walk_layers(1) > 3000); }

TEST_CASE("scale gate: every preset, micro batch", "[.long]") {
  CHECK(walk_micro_batches(1) > 3000);
}

TEST_CASE("scale gate: layers of a model with a measured curve") {
  Catalog catalog;
  for (const char* cluster : {"dgx2-v100", "dgx-a100-80g", "paper-eth40-v100"}) {
    INFO(cluster);
    CHECK(check_layers(scale_asked("bert-large", cluster, {}), 24, catalog) == 1);
  }
}

}  // namespace
}  // namespace lambcast
