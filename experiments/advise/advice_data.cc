#include <nlohmann/json.hpp>

#include "experiments/advise/advice_output.h"
#include "experiments/advise/advice_verdict.h"
#include "experiments/output/forecast_output.h"
#include "experiments/output/measure_first.h"
#include "experiments/sweep/result_row.h"
#include "sim/base/csv.h"
#include "sim/base/json.h"

namespace lambcast {
namespace {

Json gigabits(const std::optional<Bandwidth>& rate) {
  return rate ? Json(rate->value() * 8e-9) : Json(nullptr);
}

Json exchanges_json(const Advice& advice) {
  Json all = Json::array();
  for (const ExchangeAdvice& of : advice.exchanges) {
    if (!of.refused.empty()) {
      all.push_back({{"exchange", of.name}, {"refused", of.refused}});
      continue;
    }
    const bool at = of.pays && of.pays->at;
    all.push_back(
        {{"exchange", of.name},
         {"refused", nullptr},
         {"wire_bytes_per_gpu", of.wire_bytes},
         {"wire_us", of.wire_us},
         {"kernels_us", of.kernels_us ? Json(*of.kernels_us) : Json(nullptr)},
         {"step_time_us", of.step_us},
         {"run_time_s", of.run_s},
         {"speedup_vs_baseline", of.speedup.value},
         {"peak_bytes_per_gpu", of.peak.value()},
         {"fits", of.fits},
         {"break_even_nic_bandwidth_Gbps", at ? Json(of.pays->at->value() * 8e-9) : Json(nullptr)},
         {"pays_above_it", at && of.pays->pays_above},
         {"pays_at_any_bandwidth", of.pays && of.pays->pays_at_any_bandwidth},
         {"break_even_searched_to_Gbps", gigabits(of.pays ? of.pays->up_to : std::nullopt)},
         {"run_time_low_s", of.run_low_s},
         {"run_time_high_s", of.run_high_s},
         {"speedup_low", of.speedup.low},
         {"speedup_high", of.speedup.high}});
  }
  return all;
}

// Returns the speed-ups of `answer.plain` over the question's baseline, and of compression over
// `answer.plain`; null if it is not set.
Json plain_json(const Answer& answer) {
  if (!answer.plain) return nullptr;
  const PlainStep& plain = *answer.plain;
  return {{"baseline", plain.name},
          {"baseline_fits", plain.fits},
          {"baseline_speedup", plain.speedup.value},
          {"speedup", plain.compression.value},
          {"speedup_low", plain.compression.low},
          {"speedup_high", plain.compression.high}};
}

Json answer_json(const Advice& advice, const Answer& answer) {
  const auto loses = losing_part(answer.change);
  const BreakEven at = answer.break_even.value_or(BreakEven());
  Json json{{"kernels", std::string(name_of(answer.scenario.training.kernels))},
            {"verdict", verdict_text(advice, answer)},
            {"compressed_steps_share", answer.compressed_share},
            {"wire_change_us", answer.change[PartGroup::wire]},
            {"compression_change_us", answer.change[PartGroup::compression]},
            {"optimizer_change_us", answer.change[PartGroup::optimizer]},
            {"losing_part", loses ? Json(std::string(name_of(*loses))) : Json(nullptr)},
            {"break_even_nic_bandwidth_Gbps", gigabits(at.at)},
            {"pays_at_any_bandwidth", at.pays_at_any_bandwidth},
            {"cost_usd", answer.cost_usd ? Json(*answer.cost_usd) : Json(nullptr)},
            {"backends", Json::array()},
            {"answer", std::string(name_of(answer.verdict()))},
            {"verdict_words", std::string(words_of(answer.verdict()))},
            {"speedup", answer.speedup().value},
            {"speedup_low", answer.speedup().low},
            {"speedup_high", answer.speedup().high},
            {"backend", answer.backends.front().backend},
            {"compression_alone", plain_json(answer)},
            {"break_even_low_Gbps", gigabits(at.low)},
            {"break_even_high_Gbps", gigabits(at.high)},
            {"run_time_low_s", answer.forecast().run.time_low_s},
            {"run_time_high_s", answer.forecast().run.time_high_s},
            {"errors", Json::array()}};
  for (const ErrorShare& share : answer.speedup().shares)
    json["errors"].push_back({{"source", name_of_source(share.source)},
                              {"measure", measurement_for(share.source, answer.scenario.training)},
                              {"speedup_low", share.low},
                              {"speedup_high", share.high}});
  for (const BackendAdvice& backend : answer.backends)
    json["backends"].push_back({{"backend", backend.backend},
                                {"run_time_s", backend.time_s},
                                {"speedup_vs_baseline", backend.speedup.value},
                                {"speedup_low", backend.speedup.low},
                                {"speedup_high", backend.speedup.high},
                                {"peak_bytes_per_gpu", backend.peak.value()},
                                {"fits", backend.fits},
                                {"run_time_low_s", backend.forecast.run.time_low_s},
                                {"run_time_high_s", backend.forecast.run.time_high_s}});
  return json;
}

Json without_zero_json(const Advice& advice) {
  if (!advice.without_zero) return nullptr;
  const WithoutZero& plain = *advice.without_zero;
  return {{"optimizer", advice.plain_optimizer},
          {"run_time_s", plain.time_s},
          {"speedup_vs_baseline", plain.speedup.value},
          {"speedup_low", plain.speedup.low},
          {"speedup_high", plain.speedup.high},
          {"peak_bytes_per_gpu", plain.peak.value()},
          {"fits", plain.fits}};
}

Json inputs_json(const Advice& advice) {
  const Scenario& scenario = advice.answer.scenario;
  return {{"model", scenario.training.model->name},
          {"cluster", scenario.training.cluster->name},
          {"gpus", scenario.training.gpus},
          {"nodes", scenario.training.nodes()},
          {"global_batch", scenario.training.batch.train},
          {"micro_batch", scenario.training.batch.micro},
          {"grad_accum", scenario.training.batch.gas},
          {"seq_len", scenario.training.seq_len},
          {"steps", scenario.training.steps}};
}

}  // namespace

std::string advice_json(const Advice& advice) {
  const auto optional = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  Json json{{"schema_version", 1},
            {"tool", "lambcast"},
            {"version", tool_version},
            {"inputs", inputs_json(advice)},
            {"judged", advice.judged()},
            {"optimizer", advice.optimizer},
            {"baseline_optimizer", advice.baseline},
            {"baseline_time_s", advice.baseline_time_s},
            {"exposed_comm_share", advice.exposed_share},
            {"most_speedup", advice.most_speedup},
            {"warmup_assumed", advice.warmup_assumed},
            {"baseline_cost_usd", optional(advice.baseline_cost_usd)}};
  json.update(answer_json(advice, advice.answer));
  json["fused_kernels"] = advice.fused ? answer_json(advice, *advice.fused) : Json(nullptr);
  json["without_zero"] = without_zero_json(advice);
  json["exchanges"] = exchanges_json(advice);
  json["stages"] = Json::array();
  for (const StepForecast& step : advice.answer.forecast().steps)
    json["stages"].push_back({{"name", std::string(name_of(step.kind))},
                              {"step_time_us", step.step_time_us},
                              {"step_time_low_us", step.step_time_low_us},
                              {"step_time_high_us", step.step_time_high_us},
                              {"step_time_coverage", optional(step.coverage)},
                              {"communication_calibrated", step.calibrated}});
  json["findings"] = Json::array();
  for (const Finding& finding : advice.findings)
    json["findings"].push_back({{"severity", std::string(name_of(finding.severity))},
                                {"code", finding.code},
                                {"message", finding.message}});
  return json_lines(json);
}

std::string advice_csv(const Advice& advice, Catalog& catalog) {
  CollectiveCosts costs;
  std::string out = csv::row(result_columns()) + "\n";
  const auto add = [&](const Answer& answer) {
    for (const BackendAdvice& backend : answer.backends) {
      const Scenario scenario = resolve(backend.asked, catalog);
      Judgement judgement = judgement_of(scenario, backend.forecast);
      judgement.fused = fused_speedup(scenario, backend.forecast, costs);
      out += result_row(scenario, backend.forecast, judgement) + "\n";
    }
  };
  add(advice.answer);
  if (advice.fused) add(*advice.fused);
  return out;
}

}  // namespace lambcast
