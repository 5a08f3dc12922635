// Damages every shipped description in a thousand ways. The result must be an Error or an answer,
// within a short time.
//
// The project's own random generator makes each failure reproducible from its seed.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdint>

#include "experiments/sweep/sweep.h"
#include "models/shape/load.h"
#include "models/training/run/forecast.h"
#include "sim/base/error.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

// The generator splitmix64 (Steele, Lea, Flood 2014).
struct Random {
  std::uint64_t state;
  std::uint64_t next() {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t bound) { return next() % bound; }
};

const std::vector<std::string> scraps{"0",
                                      "-1",
                                      "1e308",
                                      "1e-308",
                                      "nan",
                                      "-inf",
                                      "99999999999999999999",
                                      "\"",
                                      "[",
                                      "]",
                                      "{",
                                      "}",
                                      "=",
                                      "\n",
                                      ".",
                                      "[[part]]\n",
                                      "''",
                                      "\"\"",
                                      "true",
                                      "[1]",
                                      "\x01",
                                      "\xff",
                                      "#",
                                      ",",
                                      "9223372036854775807",
                                      "65536",
                                      "\"0 Gbit/s\"",
                                      "\"1e300 Gbit/s\"",
                                      "\"-5 us\"",
                                      "\"100 h\"",
                                      "\"1:9:x2\"",
                                      "1979-05-27"};

std::string damaged(std::string text, Random& random) {
  for (std::size_t times = 1 + random.below(3); times > 0 && !text.empty(); --times) {
    const std::size_t at = random.below(text.size());
    switch (random.below(6)) {
      case 0:  // change a byte
        text[at] = static_cast<char>(random.next());
        break;
      case 1:  // insert a fragment
        text.insert(at, scraps[random.below(scraps.size())]);
        break;
      case 2:  // delete some bytes
        text.erase(at, 1 + random.below(8));
        break;
      case 3: {  // change a number or word
        const std::size_t end = text.find_first_of(" ,\n]}", at);
        text.replace(at, end == std::string::npos ? end : end - at,
                     scraps[random.below(scraps.size())]);
        break;
      }
      case 4: {  // repeat a line
        const std::size_t begin = text.rfind('\n', at) + 1;
        const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
        text.insert(end, text.substr(begin, end - begin));
        break;
      }
      default:  // cut the text off
        text.erase(at);
    }
  }
  return text;
}

// Returns how many of the damaged texts were still accepted. Any failure other than an Error fails
// the test.
template <typename Use>
int accepted(const std::string& name, const std::string& text, int times, Use use) {
  int count = 0;
  for (int i = 0; i < times; ++i) {
    Random random{static_cast<std::uint64_t>(i) * 1000003};
    const std::string broken = damaged(text, random);
    INFO(name << ", seed " << i << ":\n" << broken);
    try {
      use(broken);
      ++count;
    } catch (const Error& error) {
      if (std::string_view(error.what()).empty()) FAIL("an error without a sentence");
    } catch (const std::exception& error) {
      FAIL("not an Error: " << error.what());
    }
  }
  return count;
}

TrainingPlan small_training(std::shared_ptr<const Cluster> cluster,
                            std::shared_ptr<const Device> device,
                            std::shared_ptr<const ModelShape> model) {
  TrainingPlan training;
  training.model = std::move(model);
  training.cluster = std::move(cluster);
  training.device = std::move(device);
  training.recipe.optimizer = OptimizerType::onebit_lamb;
  training.recipe.onebit.freeze_step = 10;
  training.recipe.precision.weights = DataType::fp16;
  training.gpus_per_node = training.cluster->gpus_per_node;
  training.gpus = 2 * training.gpus_per_node;
  training.batch = {training.gpus, 1, 1};
  training.seq_len = training.model->default_seq_len;
  training.steps = 100;
  return training;
}

TEST_CASE("mutation: damaged clusters are refused or forecast") {
  const auto device = std::make_shared<const Device>(load_device("v100-16g"));
  const auto model = std::make_shared<const ModelShape>(load_model("bert-base"));
  int survivors = 0;
  for (const std::string& name : cluster_names()) {
    survivors += accepted(name, cluster_text(name), 800, [&](const std::string& text) {
      const auto cluster =
          std::make_shared<const Cluster>(decode_cluster(Table::parse(text, "damaged"), "damaged"));
      // valid, but too large for this test
      if (cluster->gpus_per_node > 64 || cluster->nics > 64) return;
      CollectiveCosts costs;
      forecast(small_training(cluster, device, model), costs);
    });
  }
  CHECK(survivors > 100);  // otherwise only the parser would be tested
}

TEST_CASE("mutation: damaged devices are refused or forecast") {
  const auto cluster = std::make_shared<const Cluster>(load_cluster("paper-eth40-v100", {}));
  const auto model = std::make_shared<const ModelShape>(load_model("bert-base"));
  int survivors = 0;
  for (const std::string& name : device_names()) {
    survivors += accepted(name, device_text(name), 2000, [&](const std::string& text) {
      const auto device =
          std::make_shared<const Device>(decode_device(Table::parse(text, "damaged")));
      CollectiveCosts costs;
      forecast(small_training(cluster, device, model), costs);
    });
  }
  CHECK(survivors > 100);
}

TEST_CASE("mutation: damaged models are refused or loaded whole") {
  const TemporaryFolder folder;
  int survivors = 0;
  for (const std::string& name : model_presets()) {
    survivors +=
        accepted(name, std::string(model_preset_text(name)), 80, [&](const std::string& text) {
          const ModelShape model = load_model(folder.file("damaged.toml", text));
          if (parameters(model) < 1 || optimized_parameters(model) < 1)
            FAIL("a model without parameters");
          if (!(training_flops(model, model.default_seq_len).value() > 0))
            FAIL("a model without work");
        });
  }
  CHECK(survivors > 50);
}

TEST_CASE("mutation: damaged sweeps are refused or planned, and their points answer") {
  const std::string text = R"(name = "small"
description = "to be damaged"
[base]
model = "bert-base"
cluster = "paper-eth40-v100"
micro_batch = 16
steps = 1000
[[part]]
[part.grid]
optimizer = ["lamb", "onebit_lamb"]
gpus = "8:32:x2"
freeze_step = ["0%", "16.7%", 100]
"cluster.nic.bandwidth" = ["1 Gbit/s", "10 Gbit/s"]
[[part.variant]]
backend = "mpi"
cuda_aware = true
)";
  Catalog catalog;
  CollectiveCosts costs;
  const auto use = [&](const std::string& broken) {
    const SweepPlan plan = plan_sweep(broken, "damaged", {});
    for (std::size_t i = 0; i < std::min<std::size_t>(plan.points.size(), 3); ++i) {
      const std::string row = sweep_row(plan.points[i], catalog, costs).text;
      if (row.find('\n') != std::string::npos) FAIL("a row of two lines");
    }
  };
  CHECK(accepted("sweep", text, 6000, use) > 100);
  CHECK(accepted("study", study_text("bert_large"), 200, use) > 10);
}

TEST_CASE("mutation: overrides of every key of a model and a cluster") {
  Catalog catalog;
  CollectiveCosts costs;
  const WhatIf base{{"model", "bert-base"}, {"cluster", "paper-eth40-v100"},
                    {"gpus", "8"},          {"optimizer", "onebit_lamb"},
                    {"micro_batch", "1"},   {"steps", "10"}};
  for (const char* key : {"cluster.nic.bandwidth",
                          "cluster.nic.count",
                          "cluster.nic.port_queue",
                          "cluster.nic.rto_min",
                          "cluster.node.gpus",
                          "cluster.node.gpu_link",
                          "cluster.nccl.nic_efficiency",
                          "cluster.nccl.Simple.network_hop",
                          "cluster.nccl.flow_cap",
                          "cluster.nccl.connections",
                          "cluster.nccl.all_reduce",
                          "cluster.fabric.kind",
                          "cluster.stack.compute_scale",
                          "cluster.max_nodes",
                          "cluster.usd_per_gpu_hour",
                          "cluster.host_copy.staged_by_mpi",
                          "cluster.name",
                          "cluster",
                          "cluster.",
                          "cluster.nic",
                          "model.layers",
                          "model.hidden",
                          "model.heads",
                          "model.vocab",
                          "model.name",
                          "model",
                          "model.",
                          "model.max_seq_len"}) {
    for (const std::string& scrap : scraps) {
      INFO(key << " = " << scrap);
      WhatIf point = base;
      point.insert_or_assign(key, scrap);
      // throws if anything other than an Error occurs
      const std::string row = sweep_row(point, catalog, costs).text;
      CHECK(row.find('\n') == std::string::npos);
    }
  }
}

}  // namespace
}  // namespace lambcast
