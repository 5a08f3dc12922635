// The JSON of a forecast, with the fields of the shipped schema.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "experiments/output/forecast_output.h"
#include "experiments/output/memory_output.h"
#include "experiments/output/skipped_steps.h"
#include "experiments/verdict/verdict.h"
#include "models/shape/adapters.h"
#include "models/shape/load.h"
#include "models/training/plan/gradient_reduction.h"
#include "models/training/price/passage.h"
#include "sim/base/file.h"
#include "sim/base/fnv.h"
#include "sim/base/json.h"
#include "sim/collectives/symmetry.h"

namespace lambcast {

const char* const tool_version = LAMBCAST_VERSION;

namespace {

Json step_json(const StepForecast& step) {
  Json json{{"name", std::string(name_of(step.kind))},
            {"steps", step.steps},
            {"step_time_us", step.step_time_us},
            {"step_time_low_us", step.step_time_low_us},
            {"step_time_high_us", step.step_time_high_us},
            {"step_time_coverage", step.coverage ? Json(*step.coverage) : Json(nullptr)},
            {"communication_calibrated", step.calibrated},
            {"compute_basis", std::string(name_of(step.basis))}};
  for (const StepFigure& figure : step_figures())
    json[std::string(figure.name)] = step.*figure.value;
  return json;
}

std::string hash_text(std::string_view bytes) { return "fnv1a64:" + fnv1a64(bytes); }

// Returns the hash of a file; null for one that can be read only once, such as a pipe. The text of
// stdin is kept, so it has a hash.
Json file_hash(const std::string& path) {
  if (path == "-") return hash_text(read_file(path));
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return nullptr;
  return hash_text(read_file(path));
}

// Adds the hash of a preset or file, and the path if it is a file.
void add_origin(Json& inputs, const std::string& what, const std::string& asked,
                const std::function<std::string(const std::string&)>& preset_text) {
  if (is_path(asked)) inputs[what + "_file"] = asked;
  inputs[what + "_hash"] = is_path(asked) ? file_hash(asked) : Json(hash_text(preset_text(asked)));
}

Json layout_json(const Parallelism& how) {
  const parallel::ParallelLayout& layout = how.layout;
  Json json{{"tp", layout.tp},
            {"cp", layout.cp},
            {"dp", layout.dp},
            {"pp", layout.pp},
            {"interleave", layout.virtual_stages},
            {"order", parallel::to_text(layout.order)},
            {"pipeline_schedule", std::string(parallel::name_of(how.schedule))},
            {"sequence_parallel", how.sequence_parallel},
            {"framework", std::string(name_of(how.framework.name))},
            {"sharded", std::string(parallel::name_of(how.sharding))},
            {"shard_ranks", how.shard_ranks},
            {"recompute", std::string(lambcast::name_of(how.repeated))},
            {"format", std::string(lambcast::name_of(how.format))},
            {"attention", std::string(lambcast::name_of(how.attention))},
            {"fp8_attention", how.fp8_attention},
            {"fp8_weight_gather", how.fp8_gather},
            {"cuda_graphs", how.captured}};
  if (layout.ep == 1) return json;
  json["ep"] = layout.ep;
  json["etp"] = layout.expert_tp();
  json["expert_dispatch"] = dispatch_names()[static_cast<std::size_t>(how.experts.dispatch)];
  json["capacity_factor"] = how.experts.capacity_factor;
  json["imbalance"] = how.experts.imbalance.value;
  return json;
}

void add_optimizer_settings(const Scenario& scenario, Json& inputs) {
  const auto& training = scenario.training;
  if (training.optimizer() == OptimizerType::zero_one_adam) {
    const OnebitSchedule& policy = training.recipe.onebit;
    inputs["var_update_scaler"] = policy.var_update_scaler;
    inputs["local_step_scaler"] = policy.local_step_scaler;
    inputs["local_step_clipper"] = policy.local_step_clipper;
  }
  const Projection& projection = training.recipe.projection;
  if (training.optimizer() == OptimizerType::galore_adamw8bit) {
    inputs["galore_rank"] = projection.rank;
    inputs["galore_update_gap"] = projection.update_proj_gap;
    inputs["galore_min_8bit_size"] = projection.min_8bit_size;
  }
  if (const auto& work = model_of(training.optimizer()).matrix_work; work && work->every > 0)
    inputs["precondition_frequency"] = projection.precondition_frequency.value_or(work->every);
}

Json inputs_json(const Scenario& scenario) {
  const auto& training = scenario.training;
  const auto& optimizer = *scenario.config.optimizer;
  const Cluster& cluster = *training.cluster;
  const auto freeze_step = freeze_step_of(training.recipe);
  const auto asked = scenario.asked.find("device");
  const std::string& device = asked == scenario.asked.end() ? cluster.device : asked->second;
  Json inputs{{"model", training.model->name},
              {"parameters", parameters(*training.model)},
              {"optimized_parameters", optimized_parameters(*training.model)},
              {"cluster", cluster.name},
              {"device", training.device->name},
              {"optimizer", std::string(name_of(optimizer.type))},
              {"backend", optimizer.comm_backend_name.value},
              {"cuda_aware", optimizer.cuda_aware.value},
              {"nodes", training.nodes()},
              {"gpus", training.gpus},
              {"gpus_per_node", training.gpus_per_node},
              {"micro_batch", training.batch.micro},
              {"grad_accum", training.batch.gas},
              {"global_batch", training.batch.train},
              {"seq_len", training.seq_len},
              {"steps", training.steps},
              {"freeze_step", freeze_step ? Json(*freeze_step) : Json(nullptr)},
              {"fp16", training.recipe.precision.weights == DataType::fp16},
              {"bf16", training.recipe.precision.weights == DataType::bf16},
              {"gradient_bytes_per_element", gradient_bytes(training)},
              {"gradient_clipping", training.recipe.gradient_clipping},
              {"weight_decay", training.recipe.weight_decay},
              {"zero_stage", training.recipe.zero.stage},
              {"nic_bandwidth_bytes_per_s", cluster.nic_bandwidth.value.value()},
              {"network", std::string(name_of(training.network))},
              {"symmetry", name_of(training.expand ? Symmetry::off : Symmetry::folded)},
              {"overlap", std::string(name_of(overlap_of(training)))},
              {"exchange", name_of(training.exchange)},
              {"deepspeed_version", text_of(scenario.config.release.value)},
              {"kernels", std::string(name_of(training.kernels))}};
  add_optimizer_settings(scenario, inputs);
  add_origin(inputs, "model", scenario.asked.at("model"),
             [](const std::string& name) { return std::string(model_preset_text(name)); });
  add_origin(inputs, "cluster", cluster.origin, cluster_text);
  add_origin(inputs, "device", device, device_text);
  const std::optional<Parallelism> layout = stated_layout(training);
  inputs["layout"] = layout ? layout_json(*layout) : Json(nullptr);
  if (const auto& adapters = training.model->adapters) {
    inputs["layout"]["lora_rank"] = adapters->rank;
    inputs["layout"]["lora_targets"] =
        adapter_target_names()[static_cast<std::size_t>(adapters->targets)];
  }
  inputs["overrides"] = Json::object();
  for (const auto& [key, value] : scenario.asked)
    if (key.find('.') != std::string::npos) inputs["overrides"][key] = value;
  if (!scenario.config.file.empty()) {
    inputs["config"] = scenario.config.file;
    inputs["config_hash"] = file_hash(scenario.config.file);
  }
  return inputs;
}

}  // namespace

std::string forecast_json(const Scenario& scenario, const Forecast& forecast,
                          const Judgement& judgement) {
  Json json{{"schema_version", 1}, {"tool", "lambcast"}, {"version", tool_version}};
  json["inputs"] = inputs_json(scenario);
  json["stages"] = Json::array();
  for (const StepForecast& step : forecast.steps) json["stages"].push_back(step_json(step));
  const RunForecast& run = forecast.run;
  const auto& fused = judgement.fused;
  const LanguageRates rates = language_rates(scenario.training, forecast);
  json["run"] = {
      {"steps", run.steps},
      {"time_s", run.time_s},
      {"samples_per_s", run.samples_per_s},
      {"gpu_hours", run.gpu_hours},
      {"cost_usd", number_or_null(run.cost_usd)},
      {"wire_bytes_per_gpu", run.wire_bytes_per_gpu},
      {"volume_reduction", run.volume_reduction},
      {"speedup_vs_baseline", run.speedup_vs_baseline},
      {"baseline_optimizer", run.baseline_optimizer},
      {"time_low_s", run.time_low_s},
      {"time_high_s", run.time_high_s},
      {"cost_low_usd", number_or_null(run.cost_at(run.time_low_s))},
      {"cost_high_usd", number_or_null(run.cost_at(run.time_high_s))},
      {"speedup_low", run.speedup ? Json(run.speedup->low) : Json(nullptr)},
      {"speedup_high", run.speedup ? Json(run.speedup->high) : Json(nullptr)},
      {"tokens_per_s", number_or_null(rates.tokens_per_s)},
      {"tflops_per_gpu", rates.tflops_per_gpu},
      {"mfu", number_or_null(rates.mfu)},
      {"verdict", judgement.verdict ? Json(std::string(lambcast::name_of(*judgement.verdict)))
                                    : Json(nullptr)},
      {"verdict_words",
       judgement.verdict ? Json(std::string(words_of(*judgement.verdict))) : Json(nullptr)},
      {"measure_first",
       judgement.measure_first.empty() ? Json(nullptr) : Json(judgement.measure_first)},
      {"fused_speedup", fused ? Json(fused->value) : Json(nullptr)},
      {"fused_speedup_low", fused ? Json(fused->low) : Json(nullptr)},
      {"fused_speedup_high", fused ? Json(fused->high) : Json(nullptr)},
      {"steps_skipped",
       expected_skipped_steps(scenario.training.recipe.precision, scenario.training.steps)}};
  json["memory"] = memory_json(scenario.training, forecast.memory);
  json["findings"] = Json::array();
  for (const Finding& finding : judgement.findings)
    json["findings"].push_back({{"severity", std::string(name_of(finding.severity))},
                                {"code", finding.code},
                                {"message", finding.message}});
  json["provenance"] = Json::object();
  for (const CostSource& source : forecast.sources.shares())
    json["provenance"][source.cost] = {{"kind", std::string(name_of(source.provenance.kind))},
                                       {"source", source.provenance.source},
                                       {"share", source.share}};
  return json_lines(json);
}

}  // namespace lambcast
