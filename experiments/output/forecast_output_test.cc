#include "experiments/output/forecast_output.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "experiments/scenario/scenario_case.h"
#include "experiments/sweep/result_cells.h"
#include "experiments/sweep/result_row.h"
#include "models/shape/load.h"
#include "sim/base/csv.h"
#include "sim/base/fnv.h"
#include "sim/base/json.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
using Keys = std::vector<std::string>;

const WhatIf onebit = complete();

struct Run {
  Catalog catalog;
  CollectiveCosts costs;
  Scenario scenario;
  Forecast result;
  Judgement judgement;

  explicit Run(WhatIf what_if, const WhatIf& changes = {}) {
    for (const auto& [key, value] : changes) what_if.insert_or_assign(key, value);
    scenario = resolve(what_if, catalog);
    result = forecast(scenario.training, costs);
    judgement = judgement_of(scenario, result);
    judgement.findings = judge(scenario.training, result);
    judgement.fused = fused_speedup(scenario, result, costs);
  }
  Json json() const { return Json::parse(forecast_json(scenario, result, judgement)); }
};

Keys keys_of(const Json& object) {
  Keys keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

Keys sorted(Keys keys) {
  std::sort(keys.begin(), keys.end());
  return keys;
}

// Keys that scripts rely on. New keys may be added; none may be removed.
const Keys interval_keys{"step_time_low_us", "step_time_high_us", "step_time_coverage",
                         "communication_calibrated", "compute_basis"};
const Keys stage_keys{"name",
                      "steps",
                      "step_time_us",
                      "forward_us",
                      "backward_us",
                      "gradient_comm_us",
                      "exposed_comm_us",
                      "compress_us",
                      "decompress_us",
                      "optimizer_us",
                      "bubble_us",
                      "wire_bytes_per_gpu",
                      "inter_node_bytes_per_node",
                      "num_collectives",
                      "samples_per_s",
                      "tokens_per_s",
                      "tflops_per_gpu"};
const Keys run_keys{"steps",
                    "time_s",
                    "samples_per_s",
                    "gpu_hours",
                    "cost_usd",
                    "wire_bytes_per_gpu",
                    "volume_reduction",
                    "speedup_vs_baseline",
                    "baseline_optimizer",
                    "time_low_s",
                    "time_high_s",
                    "cost_low_usd",
                    "cost_high_usd",
                    "speedup_low",
                    "speedup_high",
                    "tokens_per_s",
                    "tflops_per_gpu",
                    "mfu",
                    "verdict",
                    "verdict_words",
                    "measure_first",
                    "fused_speedup",
                    "fused_speedup_low",
                    "fused_speedup_high",
                    "steps_skipped"};

TEST_CASE("json: every promised key is present, with its type") {
  const Json json = Run(onebit).json();
  CHECK(json.at("schema_version") == 1);
  CHECK(json.at("tool") == "lambcast");
  CHECK(json.at("version") == tool_version);
  CHECK(keys_of(json) == sorted({"schema_version", "tool", "version", "inputs", "stages", "run",
                                 "memory", "findings", "provenance"}));
  REQUIRE(json.at("stages").size() == 2);
  CHECK(json.at("stages")[0].at("name") == "warmup");
  CHECK(json.at("stages")[1].at("name") == "compression");
  for (const Json& stage : json.at("stages")) {
    Keys all = stage_keys;
    all.insert(all.end(), interval_keys.begin(), interval_keys.end());
    CHECK(keys_of(stage) == sorted(all));
    for (const std::string& key : stage_keys)
      if (key != "name") CHECK(stage.at(key).is_number());
    CHECK(stage.at("communication_calibrated").is_boolean());
    CHECK(stage.at("compute_basis") == "this_machine");
    // null because communication is not calibrated
    CHECK(stage.at("step_time_coverage").is_null());
    CHECK(stage.at("step_time_low_us") <= stage.at("step_time_us"));
    CHECK(stage.at("step_time_high_us") >= stage.at("step_time_us"));
  }
  CHECK(keys_of(json.at("run")) == sorted(run_keys));
  CHECK(json.at("run").at("cost_usd").is_null());
  CHECK(json.at("run").at("baseline_optimizer") == "lamb");
  CHECK(keys_of(json.at("memory")) ==
        sorted({"peak_bytes_per_gpu", "peak_low_bytes_per_gpu", "peak_high_bytes_per_gpu", "fits",
                "parts", "stages"}));
  CHECK(json.at("memory").at("peak_low_bytes_per_gpu") <
        json.at("memory").at("peak_bytes_per_gpu"));
  CHECK(json.at("memory").at("peak_high_bytes_per_gpu") >
        json.at("memory").at("peak_bytes_per_gpu"));
  CHECK(json.at("memory").at("fits").is_boolean());
  double parts = 0;
  for (const auto& [part, bytes] : json.at("memory").at("parts").items())
    parts += bytes.get<double>();
  CHECK(parts == Approx(json.at("memory").at("peak_bytes_per_gpu").get<double>()));
  REQUIRE(json.at("memory").at("stages").size() == 1);
  CHECK(json.at("memory").at("stages")[0].at("parts") == json.at("memory").at("parts"));
  for (const auto& [cost, from] : json.at("provenance").items()) {
    CHECK(keys_of(from) == sorted({"kind", "share", "source"}));
    CHECK(std::set<std::string>{"measured", "published", "fitted", "assumed"}.contains(
        from.at("kind").get<std::string>()));
    CHECK_FALSE(from.at("source").get<std::string>().empty());
  }
  CHECK(json.at("inputs").at("gpus") == 64);
  CHECK(json.at("inputs").at("cluster_hash").get<std::string>().starts_with("fnv1a64:"));
}

TEST_CASE("json: a plain optimizer has one stage, a price gives a cost, findings have codes") {
  const Json plain =
      Run(onebit, {{"optimizer", "lamb"}, {"cluster.usd_per_gpu_hour", "3.0"}}).json();
  REQUIRE(plain.at("stages").size() == 1);
  CHECK(plain.at("stages")[0].at("name") == "uniform");
  CHECK(plain.at("run").at("cost_usd").get<double>() ==
        Approx(3 * plain.at("run").at("gpu_hours").get<double>()));
  CHECK(plain.at("findings").empty());
  const Json alone = Run(onebit, {{"gpus", "1"}, {"cluster", "dgx2h-v100"}}).json();
  REQUIRE(alone.at("findings").size() == 1);
  CHECK(keys_of(alone.at("findings")[0]) == sorted({"severity", "code", "message"}));
  CHECK(alone.at("findings")[0].at("code") == "nothing-to-compress");
  CHECK(alone.at("findings")[0].at("severity") == "warning");
}

TEST_CASE("json: files are named with their hash") {
  const TemporaryFolder folder;
  // FNV-1a of the empty text is its offset basis; for "a" it is (basis ^ 0x61) * prime.
  CHECK(fnv1a64("") == "cbf29ce484222325");
  CHECK(fnv1a64("a") == "af63dc4c8601ec8c");
  const std::string text = R"({"train_batch_size": 64, "fp16": {"enabled": true}})";
  const std::string file = folder.file("ds.json", text);
  const Json inputs = Run({{"model", "bert-large"},
                           {"cluster", "paper-eth40-v100"},
                           {"gpus", "8"},
                           {"optimizer", "lamb"},
                           {"config", file}})
                          .json()
                          .at("inputs");
  CHECK(inputs.at("config") == file);
  CHECK(inputs.at("config_hash") == "fnv1a64:" + fnv1a64(text));
}

TEST_CASE("json: the hashes are those of the descriptions that were read, overrides are listed") {
  const TemporaryFolder folder;
  const auto inputs = [](const WhatIf& changes) {
    return Run(onebit, changes).json().at("inputs");
  };
  const Json presets = inputs({});
  CHECK(presets.at("device") == "v100-16g");
  CHECK(presets.at("device_hash") == "fnv1a64:" + fnv1a64(device_text("v100-16g")));
  CHECK(presets.at("model_hash") == "fnv1a64:" + fnv1a64(model_preset_text("bert-large")));
  CHECK(presets.at("cluster_hash") == "fnv1a64:" + fnv1a64(cluster_text("paper-eth40-v100")));
  CHECK(presets.at("overrides").empty());
  for (const char* file : {"model_file", "cluster_file", "device_file", "config"})
    CHECK_FALSE(presets.contains(file));

  // Two copies of a description: one with the preset's name, one renamed.
  const std::string kept = device_text("v100-16g") + "\n# slower\n";
  std::string renamed = kept;
  renamed.replace(renamed.find("v100-16g"), 8, "mine-16g");
  for (const std::string& text : {kept, renamed}) {
    const std::string file = folder.file("device.toml", text);
    const Json own = inputs({{"device", file}});
    CHECK(own.at("device_file") == file);
    CHECK(own.at("device_hash") == "fnv1a64:" + fnv1a64(text));
  }
  const std::string model(model_preset_text("bert-large")), cluster = cluster_text("dgx1-v100");
  const Json own = inputs({{"model", folder.file("model.toml", model)},
                           {"cluster", folder.file("cluster.toml", cluster)},
                           {"model.ffn", "2048"},
                           {"cluster.node.gpu_link", "20GB/s"}});
  CHECK(own.at("model_file") == (folder.path() / "model.toml").string());
  CHECK(own.at("model_hash") == "fnv1a64:" + fnv1a64(model));
  CHECK(own.at("cluster_file") == (folder.path() / "cluster.toml").string());
  CHECK(own.at("cluster_hash") == "fnv1a64:" + fnv1a64(cluster));
  CHECK(own.at("overrides") == Json{{"cluster.node.gpu_link", "20GB/s"}, {"model.ffn", "2048"}});
}

TEST_CASE(
    "json: freeze_step is the step at which compression starts, and the kernels are those "
    "that run") {
  const TemporaryFolder folder;
  const std::string file = folder.file("01_adam.json", R"({"train_batch_size": 4096,
    "optimizer": {"type": "ZeroOneAdam", "params": {"lr": 1e-3, "var_freeze_step": 12500}},
    "fp16": {"enabled": true}})");
  const auto inputs = [](const WhatIf& what_if) { return Run(what_if).json().at("inputs"); };
  CHECK(inputs({{"model", "bert-large"},
                {"cluster", "paper-eth40-v100"},
                {"gpus", "8"},
                {"micro_batch", "16"},
                {"config", file}})
            .at("freeze_step") == 12500);
  CHECK(inputs(onebit).at("freeze_step") == 1001);
  WhatIf plain = onebit;
  plain["optimizer"] = "lamb";
  plain["cluster"] = "dgx-a100-80g";
  CHECK(inputs(plain).at("freeze_step").is_null());
  CHECK(inputs(plain).at("kernels") == "nvidia");
}

TEST_CASE("table: names the run, its speed, its baseline and its sources") {
  const Run run(onebit);
  const std::string table = forecast_table(run.scenario, run.result, run.judgement);
  for (const char* text :
       {"bert-large with onebit_lamb on paper-eth40-v100: 64 GPUs (16 nodes), batch 65536 = 16 x "
        "64 x 64 GPUs, sequence 128",
        "warmup", "compression", "run: 5993 steps in ", "against lamb: ", "4.57x fewer bytes",
        "memory: ", "rests on "})
    CHECK_THAT(table, Contains(text));
}

TEST_CASE("table: a run of years is as long as in the JSON") {
  CHECK(run_time_text(90) == "90 s");
  CHECK(run_time_text(36000) == "10 h");
  CHECK(run_time_text(360000) == "100 h");
  CHECK(run_time_text(1072386000) == "297885 h");
  const Run run(onebit, {{"steps", "100000000"}, {"freeze_step", "1000"}});
  const double hours = run.json().at("run").at("time_s").get<double>() / 3600;
  REQUIRE(hours > 3000);
  CHECK_THAT(forecast_table(run.scenario, run.result, run.judgement),
             Contains(fmt::format("run: 100000000 steps in {:.0f} h (", hours)));
}

TEST_CASE("table: one line shows how far the step may be off, and the source of that interval") {
  const auto line = [](const WhatIf& changes) {
    const Run run(onebit, changes);
    const std::string table = forecast_table(run.scenario, run.result, run.judgement);
    const std::size_t at = table.find("step within ");
    return table.substr(at, table.find('\n', at) - at);
  };
  CHECK_THAT(line({}), Contains("step within warmup ") && Contains(" ms, compression ") &&
                           Contains(": communication not calibrated, compute fitted here"));
  const WhatIf plain{{"optimizer", "lamb"}, {"cluster", "dgx-a100-80g"}, {"micro_batch", "256"}};
  WhatIf other_length = plain, alone = plain, images = plain;
  other_length["seq_len"] = "256";
  other_length["micro_batch"] = "128";  // the same number of tokens
  alone["gpus"] = "1";
  alone["cluster"] = "commodity-10gbe";
  images["model"] = "vit-l16";
  images["cluster"] = "hgx-h100-ndr";
  CHECK_THAT(line(plain),
             Contains(" ms (83 %): communication ") &&
                 Contains("from a preset of the same hardware, compute known for this GPU"));
  CHECK_THAT(line(other_length), Contains(" ms (80 %): "));
  CHECK_THAT(line(alone), Contains(" ms (90 %): compute from kernel shapes"));
  CHECK_THAT(line(images), Contains("compute from FLOPs alone"));
  WhatIf changed = plain;
  changed["cluster.nic.bandwidth"] = "10Gbit/s";
  CHECK_THAT(line(changed),
             Contains(" ms: communication extrapolated (--set changed nic.bandwidth), compute "));
}

TEST_CASE("csv: the promised columns are in the promised order") {
  const Keys& columns = result_columns();
  const Keys first{"model",       "cluster",    "optimizer",    "backend", "nodes", "gpus",
                   "micro_batch", "grad_accum", "global_batch", "seq_len", "steps", "freeze_step"};
  REQUIRE(columns.size() > first.size());
  CHECK(Keys(columns.begin(), columns.begin() + 12) == first);
  CHECK(std::set<std::string>(columns.begin(), columns.end()).size() == columns.size());
  // The figures of the stages come first, then those of the run, then status and cost_source.
  std::size_t at = 12;
  for (const char* stage : {"uniform", "warmup", "compression", "silent"})
    for (const std::string& key : stage_keys)
      if (key != "name") CHECK(columns.at(at++) == std::string(stage) + "_" + key);
  const auto place = [&](const std::string& name) {
    return std::find(columns.begin(), columns.end(), name) - columns.begin();
  };
  CHECK(place("run_time_s") == static_cast<long>(at));
  CHECK(place("status") > place("fits"));
  CHECK(place("cost_source") == place("status") + 1);
  for (const char* name : {"volume_reduction", "speedup_vs_baseline", "peak_bytes_per_gpu"})
    CHECK(place(name) < place("status"));
  const Keys last{"silent_step_time_high_us",
                  "communication_calibrated",
                  "uniform_step_time_coverage",
                  "warmup_step_time_coverage",
                  "compression_step_time_coverage",
                  "silent_step_time_coverage",
                  "compute_basis",
                  "device",
                  "gpus_per_node",
                  "precision",
                  "zero_stage",
                  "overlap",
                  "symmetry",
                  "settings",
                  "run_time_low_s",
                  "run_time_high_s",
                  "cost_low_usd",
                  "cost_high_usd",
                  "speedup_low",
                  "speedup_high",
                  "run_tokens_per_s",
                  "tflops_per_gpu",
                  "mfu",
                  "verdict",
                  "measure_first",
                  "fused_speedup",
                  "fused_speedup_low",
                  "fused_speedup_high",
                  "findings"};
  const auto from = columns.begin() + place(last.front());
  CHECK(Keys(from, from + static_cast<long>(last.size())) == last);
  // Stages that were added later follow as whole groups.
  at = static_cast<std::size_t>(place("findings")) + 1;
  for (const std::string stage : {"refresh", "round", "dry_run"}) {
    for (const std::string& key : stage_keys)
      if (key != "name") CHECK(columns.at(at++) == stage + "_" + key);
    for (const char* end : {"time_low_us", "time_high_us", "time_coverage"})
      CHECK(columns.at(at++) == stage + "_step_" + end);
  }
  CHECK(columns.at(at++) == "steps_skipped");
  CHECK(columns.at(at++) == "verdict_words");
  CHECK(at == columns.size());
}

TEST_CASE("csv: every key of a question can be read from its row") {
  const TemporaryFolder folder;
  const std::string device = folder.file("mine.toml", device_text("v100-16g"));
  const std::string model = folder.file("model.toml", std::string(model_preset_text("bert-large")));
  const std::vector<std::pair<std::string, std::string>> asked{
      {"precision", "bf16"},  {"zero_stage", "1"},    {"overlap", "ddp"},
      {"symmetry", "off"},    {"device", "v100-32g"}, {"device", device},
      {"model", model},       {"gpus_per_node", "2"}, {"cluster.node.gpu_link", "20GB/s"},
      {"model.ffn", "2048"},  {"network", "flow"},    {"kernels", "fused"},
      {"cuda_aware", "true"}, {"seq_len", "64"}};
  for (const auto& [key, value] : asked) {
    INFO(key << "=" << value);
    const auto is_shown = [word = value,
                           setting = fmt::format("{}={}", key, value)](const std::string& field) {
      return field == word || field == setting;
    };
    const Run run(onebit, {{"optimizer", "adam"}, {key, value}});
    const std::vector<std::string> row =
        cells_of(result_row(run.scenario, run.result, run.judgement));
    const bool shown = std::any_of(row.begin(), row.end(), is_shown);
    CHECK(shown);
    // The same holds for a point that cannot run.
    const auto refused = cells_of(infeasible_row({{key, value}}, "why"));
    CHECK(std::any_of(refused.begin(), refused.end(), is_shown));
  }
  const Run two(onebit, {{"model.ffn", "2048"}, {"cluster.node.gpu_link", "20GB/s"}});
  const auto settings = std::find(result_columns().begin(), result_columns().end(), "settings") -
                        result_columns().begin();
  CHECK(cells_of(result_row(two.scenario, two.result, two.judgement))
            .at(static_cast<std::size_t>(settings)) ==
        "cluster.node.gpu_link=20GB/s; model.ffn=2048");
  CHECK(Run(onebit).scenario.asked == onebit);
}

TEST_CASE("csv: a row has the same values as the JSON") {
  // With so much computation per exchange, the assumed numbers of the fast network and of the
  // optimizer each affect less than 1 % of the time.
  for (const auto& [changes, cost_source] :
       {std::pair(WhatIf{}, "assumed"), std::pair(WhatIf{{"optimizer", "lamb"}}, "assumed"),
        std::pair(WhatIf{{"optimizer", "zero_one_adam"}}, "assumed"),
        std::pair(WhatIf{{"optimizer", "lamb"}, {"cluster", "dgx-a100-80g"}}, "published")}) {
    const Run run(onebit, changes);
    const Json json = run.json();
    const csv::Table table =
        csv::parse(csv::row(result_columns()) + "\n" +
                       result_row(run.scenario, run.result, run.judgement) + "\n",
                   "row");
    std::size_t present = 0;
    for (const Json& stage : json.at("stages")) {
      const std::string prefix = stage.at("name").get<std::string>() + "_";
      for (const std::string& key : stage_keys)
        if (key != "name") CHECK(table.number(0, prefix + key) == stage.at(key).get<double>());
      for (const char* end : {"step_time_low_us", "step_time_high_us"})
        CHECK(table.number(0, prefix + end) == stage.at(end).get<double>());
      CHECK(table.text(0, "communication_calibrated") ==
            stage.at("communication_calibrated").dump());
      const Json& coverage = stage.at("step_time_coverage");
      CHECK(table.text(0, prefix + "step_time_coverage") ==
            (coverage.is_null() ? "" : coverage.dump()));
      CHECK(table.text(0, "compute_basis") == stage.at("compute_basis").get<std::string>());
      ++present;
    }
    for (const char* stage : {"uniform", "warmup", "compression", "silent"})
      if (!table.text(0, std::string(stage) + "_step_time_us").empty()) --present;
    CHECK(present == 0);
    const Json& inputs = json.at("inputs");
    CHECK(table.text(0, "kernels") == inputs.at("kernels").get<std::string>());
    const Json& freeze_step = inputs.at("freeze_step");
    CHECK(table.text(0, "freeze_step") == (freeze_step.is_null() ? "" : freeze_step.dump()));
    CHECK(table.number(0, "run_time_s") == json.at("run").at("time_s").get<double>());
    CHECK(table.number(0, "speedup_vs_baseline") ==
          json.at("run").at("speedup_vs_baseline").get<double>());
    for (const auto& [column, key] :
         {std::pair("run_time_low_s", "time_low_s"), std::pair("run_time_high_s", "time_high_s"),
          std::pair("speedup_low", "speedup_low"), std::pair("speedup_high", "speedup_high"),
          std::pair("run_tokens_per_s", "tokens_per_s"), std::pair("mfu", "mfu")}) {
      const Json& value = json.at("run").at(key);
      INFO(column);
      CHECK(table.text(0, column) == (value.is_null() ? "" : csv::number(value.get<double>())));
    }
    CHECK(table.number(0, "run_time_low_s") < table.number(0, "run_time_s"));
    CHECK(table.text(0, "status") == "ok");
    CHECK(table.text(0, "cost_source") == cost_source);
  }
}

}  // namespace
}  // namespace lambcast
