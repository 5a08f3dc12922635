#include "experiments/advise/advice_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "experiments/advise/advice_verdict.h"
#include "experiments/advise/break_even_text.h"
#include "experiments/output/cell.h"
#include "experiments/output/forecast_output.h"
#include "experiments/output/measure_first.h"
#include "experiments/sweep/result_row.h"
#include "models/training/plan/exchange_name.h"
#include "sim/base/counted.h"
#include "sim/base/csv.h"
#include "sim/base/json.h"

namespace lambcast {
namespace {

// Parts of a step that compression changes.
constexpr std::array changing{PartGroup::wire, PartGroup::compression, PartGroup::optimizer};

// Returns the part of a step that grows most relative to the plain run; nothing if no part grows.
std::optional<PartGroup> losing_part(const PartTimes& change) {
  const PartGroup worst =
      *std::ranges::max_element(changing, {}, [&](PartGroup part) { return change[part]; });
  return change[worst] > 0 ? std::optional(worst) : std::nullopt;
}

// States the change of the step, and the part that grows most if the step becomes longer. `all` is
// the change in microseconds.
std::string conclusion(const Answer& answer, double all) {
  const bool is_of_verdict = !answer.plain_gains();
  if (is_of_verdict && answer.verdict() == Verdict::hardly)
    return fmt::format(": together {:.2f} ms {}, too little to matter.", std::abs(all) * 1e-3,
                       all > 0 ? "more" : "less");
  const char* as_expected =
      is_of_verdict && answer.verdict() == Verdict::cannot_tell ? "by the expected times " : "";
  const auto more = losing_part(answer.change);
  const std::string most =
      all > 0 && more ? fmt::format(", most of it {}", name_of(*more)) : std::string();
  return fmt::format(": {}{:.2f} ms {} together{}.", as_expected, std::abs(all) * 1e-3,
                     all > 0 ? "more" : "less", most);
}

std::string change_sentence(const Answer& answer) {
  std::string out = fmt::format("{} a step of {}, the mean step of the run has",
                                answer.plain_gains() ? "Both changes together, against" : "Against",
                                answer.against);
  const char* separator = " ";
  const PartTimes& change = answer.change;
  double all = 0;
  for (const PartGroup part : changing) {
    out += fmt::format("{}{} {:.2f} ms {}", separator, name_of(part), std::abs(change[part]) * 1e-3,
                       change[part] > 0 ? "more" : "less");
    separator = ", ";
    all += change[part];
  }
  return out + conclusion(answer, all);
}

// Returns the verdict in words. Leaves out sentences already printed for the first kind of kernels.
std::string judgement_text(const Advice& advice, const Answer& answer,
                           const Answer* first = nullptr) {
  std::string out = verdict_text(advice, answer) + "\n";
  if (!advice.judged() || !answer.backends.front().fits) return out;
  out += change_sentence(answer) + "\n";
  const std::string breaks_even = break_even_sentence(answer);
  if (first == nullptr || breaks_even != break_even_sentence(*first)) out += breaks_even + "\n";
  return out;
}

std::string range_cell(const RatioInterval& ratio) {
  return fmt::format("{:.2f} to {:.2f}", ratio.low, ratio.high);
}

std::string table_of(const Answer& answer, const Answer* first = nullptr) {
  // If the answer compares two changes, the table shows the gain of both together.
  const std::string against =
      answer.plain_gains() ? fmt::format(", speed-ups against {}", answer.against) : "";
  std::string out = fmt::format("{} kernels{}\n{:<17} {:>8} {:>14} {:>8} {:>12} {:>9} {:>4}\n",
                                whose_kernels(answer), against, "backend", "run", "within",
                                "speed-up", "within", "memory", "fits");
  for (const BackendAdvice& backend : answer.backends) {
    const std::string range = time_range(backend.time_s, backend.forecast.run.time_low_s,
                                         backend.forecast.run.time_high_s);
    out += fmt::format("{:<17} {:>8} {:>14} {:>7.2f}x {:>12} {:>9} {:>4}\n", backend.backend,
                       time_cell(backend.time_s), range.substr(0, range.rfind(' ')),
                       backend.speedup.value, range_cell(backend.speedup), bytes_cell(backend.peak),
                       backend.fits ? "yes" : "no");
  }
  if (first != nullptr && answer.refused == first->refused) return out;
  for (const auto& [reason, backends] : answer.refused)
    out += fmt::format("{}: not here: {}\n", fmt::join(backends, ", "), reason);
  return out;
}

std::string break_even_text(const ExchangeAdvice& advice) {
  if (!advice.pays) return "";
  if (advice.pays->at)
    return fmt::format("{}{}", advice.pays->pays_above ? '>' : '<',
                       number_cell(advice.pays->at->value() * 8e-9));
  // Beyond what was searched, the row's own speed-up says which side of 1 it is on.
  const bool pays_here = advice.speedup.value > 1;
  if (advice.pays->up_to && pays_here != advice.pays->pays_at_any_bandwidth)
    return fmt::format("{}{}", pays_here ? '>' : '<',
                       number_cell(advice.pays->up_to->value() * 8e-9));
  return advice.pays->pays_at_any_bandwidth ? "any" : "none";
}

std::string coding_cell(const std::optional<double>& us) {
  return us ? fmt::format("{:.1f}", *us * 1e-3) : "passes";
}

// Returns the rejected exchanges grouped by reason, in the order of the table.
std::string refused_exchanges(const Advice& advice) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const ExchangeAdvice& of : advice.exchanges) {
    if (of.refused.empty()) continue;
    const auto known = std::ranges::find_if(
        reasons, [&](const auto& reason) { return reason.first == of.refused; });
    if (known == reasons.end())
      reasons.push_back({of.refused, {shown_name(of.name)}});
    else
      known->second.push_back(shown_name(of.name));
  }
  std::string out;
  for (const auto& [reason, names] : reasons)
    out += fmt::format("{}: not here: {}\n", fmt::join(names, ", "), reason);
  return out;
}

// Lists the gains of other libraries' variants over DeepSpeed's variant of the same codec. Variants
// that send only every H steps are left out, since their steps are not comparable.
std::string forms_text(const Advice& advice) {
  std::string out;
  for (const ExchangeAdvice& of : advice.exchanges) {
    const std::string codec = of.name.substr(0, of.name.find(" / "));
    const auto flat = std::ranges::find(advice.exchanges, codec, &ExchangeAdvice::name);
    const bool seldom = of.name.find("/ every") != std::string::npos;
    if (codec == of.name || seldom || !of.refused.empty() || flat == advice.exchanges.end())
      continue;
    out += fmt::format("{}: a step {:.2f}x as fast as {} among all GPUs after the backward pass\n",
                       shown_name(of.name), flat->step_us / of.step_us, shown_name(codec));
  }
  if (out.empty()) return out;
  return out +
         "Bagua runs what is between node leaders, on PyTorch; sharded, signs of gradients go with "
         "the kernels that ship here (kernels/nccl/two_level_allreduce.h). DeepSpeed runs "
         "neither.\n";
}

std::string exchanges_text(const Advice& advice) {
  constexpr std::size_t width = 15;
  std::string out = fmt::format(
      "\n{:<{}} {:>8} {:>6} {:>6} {:>12} {:>8}  {}\n{:<{}} {:>8} {:>6} {:>6} {:>12} {:>8}  {}\n",
      "exchange", width, "sent", "coding", "faster", "within", "memory", "pays at", "", width,
      "a step", "(ms)", "", "", "a GPU", "Gbit/s of NICs");
  for (const ExchangeAdvice& of : advice.exchanges) {
    const std::string name = shown_name(of.name);
    if (of.refused.empty())
      out += fmt::format("{:<{}} {:>8} {:>6} {:>5.2f}x {:>12} {:>8}  {}\n",
                         name.size() <= width ? name : fmt::format("{}\n{:{}}", name, "", width),
                         width, bytes_cell(Bytes(of.wire_bytes)), coding_cell(of.kernels_us),
                         of.speedup.value, range_cell(of.speedup), bytes_cell(of.peak),
                         of.fits ? break_even_text(of) : "DOES NOT FIT");
  }
  out += fmt::format(
      "faster: of the whole run; the errors of sending and coding are in its interval. memory: "
      "within {:.0f} %.\n",
      100 * memory_error);
  out += forms_text(advice);
  out += refused_exchanges(advice);
  if (std::ranges::any_of(advice.exchanges, [](const auto& of) { return !of.kernels_us; }))
    out += "At ZeRO stage 3 gradients are coded block by block, inside the passes.\n";
  return out + fmt::format(
                   "All but {} with {}; speed-ups are against {} with all_reduce. What fewer bits "
                   "cost in steps is not forecast.\n",
                   advice.optimizer, advice.baseline, advice.baseline);
}

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

// The gain of compression and that of the change before it.
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

// Describes the effect of turning ZeRO off without compression, and names the fastest of the three
// runs.
std::string without_zero_text(const Advice& advice) {
  if (!advice.without_zero) return "";
  const WithoutZero& plain = *advice.without_zero;
  const std::string name = advice.plain_optimizer + " without ZeRO";
  std::string out =
      fmt::format("{} is {} as fast as {}", name, ratio_text(plain.speedup), advice.baseline);
  if (!plain.fits)
    return out + fmt::format(", but needs {} a GPU, more than there is.\n", to_text(plain.peak));
  const BackendAdvice& onebit = advice.answer.backends.front();
  const double fastest_s = std::min(plain.time_s, advice.baseline_time_s);
  std::string fastest = plain.time_s < advice.baseline_time_s ? name : advice.baseline;
  if (onebit.fits && onebit.time_s < fastest_s) fastest = advice.optimizer;
  return out + fmt::format(" and fits, in {} a GPU: the fastest of the three that fits is {}.\n",
                           to_text(plain.peak), fastest);
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

std::string money(const RunForecast& run, double usd, double low_s, double high_s) {
  return fmt::format("{} USD ({} to {})", usd_cell(usd), usd_cell(usd * low_s / run.time_s),
                     usd_cell(usd * high_s / run.time_s));
}

// Prints the cost intervals of both runs. Their errors are correlated, so these intervals do not
// decide which run is cheaper; the verdict does.
std::string cost_text(const Advice& advice) {
  if (!advice.judged() || !advice.answer.backends.front().fits) return "";
  if (!advice.answer.scenario.training.cluster->usd_per_gpu_hour)
    return fmt::format("\ncost: {}\n", no_price_text());
  const auto of = [](const Answer& answer) {
    const RunForecast& run = answer.forecast().run;
    return money(run, *answer.cost_usd, run.time_low_s, run.time_high_s);
  };
  std::string out = "\ncost: " + of(advice.answer);
  if (advice.fused && advice.fused->cost_usd)
    out += fmt::format(", with fused kernels {}", of(*advice.fused));
  RunForecast plain;
  plain.time_s = advice.baseline_time_s;
  return out + fmt::format(", against {} of {}\n",
                           money(plain, *advice.baseline_cost_usd, advice.baseline_time_low_s,
                                 advice.baseline_time_high_s),
                           advice.baseline);
}

}  // namespace

std::string advice_text(const Advice& advice) {
  const Answer& answer = advice.answer;
  const TrainingPlan& training = answer.scenario.training;
  std::string out = judgement_text(advice, answer);
  if (!answer.plain_gains())
    out += fmt::format(
        "{:.0f}% of a step of {} is exposed communication: by the expected times no compression "
        "makes the run more than {:.2f}x as fast.\n",
        advice.exposed_share * 100, advice.baseline, advice.most_speedup);
  out += without_zero_text(advice);
  if (advice.fused && advice.judged())
    out += fmt::format("\nWith the fused kernels that ship here (--kernels fused):\n{}",
                       judgement_text(advice, *advice.fused, &answer));
  out += fmt::format("\n{}", table_of(answer));
  if (advice.fused) out += table_of(*advice.fused, &answer);
  out += fmt::format("backend {}, {} kernels: {}", answer.backends.front().backend,
                     whose_kernels(answer), interval_text(training, answer.forecast()));
  out += cost_text(advice);
  out += exchanges_text(advice);
  out += fmt::format(
      "\n{} of {}, batch {}, {}. Time only: whether the model converges with this "
      "freeze_step is not forecast.\n",
      counted(training.gpus, "GPU"), training.cluster->name, training.batch.train,
      counted(training.steps, "step"));
  for (const Finding& finding : advice.findings)
    out += fmt::format("{}: {} [{}]\n", name_of(finding.severity), finding.message, finding.code);
  return out;
}

namespace {

Json inputs_json(const Advice& advice) {
  const TrainingPlan& training = advice.answer.scenario.training;
  return {{"model", training.model->name},
          {"cluster", training.cluster->name},
          {"gpus", training.gpus},
          {"nodes", training.nodes()},
          {"global_batch", training.batch.train},
          {"micro_batch", training.batch.micro},
          {"grad_accum", training.batch.gas},
          {"seq_len", training.seq_len},
          {"steps", training.steps}};
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
