#include "experiments/advice_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "experiments/forecast_output.h"

namespace lambcast {
namespace {

using Json = nlohmann::ordered_json;

const char* whose_kernels(const Answer& answer) {
  return answer.scenario.training.kernels == Kernels::fused ? "fused" : "DeepSpeed's unfused";
}

std::string verdict(const Advice& advice, const Answer& answer) {
  const BackendAdvice& best = answer.backends.front();
  if (!best.fits)
    return fmt::format("No: {} needs {} a GPU, more than there is.", advice.optimizer,
                       to_text(best.peak));
  if (!advice.judged())
    return fmt::format(
        "Not judged: only {:.3g} % of the {} steps compress, too few to say anything of "
        "compression; give --steps of a longer run, or a usual warm-up with --freeze-step {}.",
        100 * answer.compressed_share, answer.forecast.run.steps, assumed_warmup);
  const std::string setting =
      fmt::format("{}, {} kernels{}", best.backend, whose_kernels(answer),
                  advice.warmup_assumed
                      ? fmt::format(" and a warm-up of {} of the run (assumed)", assumed_warmup)
                      : "");
  if (best.speedup < 0.995)
    return fmt::format("No: {} takes {:.2f} times as long as {}, with its best backend {}.",
                       advice.optimizer, 1 / best.speedup, advice.baseline, setting);
  if (best.speedup < 1.05)
    return fmt::format("Hardly: {} is {:.2f}x as fast as {}, with its best backend {}.",
                       advice.optimizer, best.speedup, advice.baseline, setting);
  return fmt::format("Yes: {} makes the run {:.2f}x as fast as {}, with backend {}.",
                     advice.optimizer, best.speedup, advice.baseline, setting);
}

std::array<std::pair<const char*, double>, 3> parts_of(const StepChange& change) {
  return {{{"wire", change.wire_us},
           {"compression", change.compression_us},
           {"optimizer", change.optimizer_us}}};
}

// The part of a step that takes most longer than in the plain one; null where none does.
const char* losing_part(const StepChange& change) {
  const auto parts = parts_of(change);
  const auto* worst = std::ranges::max_element(parts, {}, &std::pair<const char*, double>::second);
  return worst->second > 0 ? worst->first : nullptr;
}

std::string change_sentence(const Advice& advice, const Answer& answer) {
  std::string out = fmt::format("Against a {} step, the mean step of the run has", advice.baseline);
  const char* separator = " ";
  for (const auto& [part, us] : parts_of(answer.change)) {
    out += fmt::format("{}{} {:.2f} ms {}", separator, part, std::abs(us) * 1e-3,
                       us > 0 ? "more" : "less");
    separator = ", ";
  }
  const char* loses = losing_part(answer.change);
  return loses == nullptr ? out + "." : out + fmt::format(": the {} loses.", loses);
}

std::string break_even_sentence(const Answer& answer) {
  const TrainingPlan& training = answer.scenario.training;
  if (training.nodes() == 1) return "One node: the NIC plays no part.";
  const Sourced<Bandwidth>& nic = training.cluster->nic_bandwidth;
  if (answer.break_even)
    return fmt::format("It stops paying above a NIC bandwidth of {}; this cluster has {} ({}).",
                       to_text_bits(*answer.break_even), to_text_bits(nic.value),
                       name_of(nic.provenance.kind));
  return answer.pays_at_any_bandwidth ? "It pays at any NIC bandwidth: something else in the node "
                                        "holds the plain optimizer back."
                                      : "It pays at no NIC bandwidth from 100 Mbit/s to 10 Tbit/s.";
}

std::string judgement(const Advice& advice, const Answer& answer) {
  std::string out = verdict(advice, answer) + "\n";
  if (!advice.judged()) return out;
  return out + change_sentence(advice, answer) + "\n" + break_even_sentence(answer) + "\n";
}

std::string table_of(const Answer& answer) {
  std::string out = fmt::format("{:<20} {:>12} {:>9} {:>12} {:>6}   {} kernels\n", "backend", "run",
                                "speed-up", "memory a GPU", "fits", whose_kernels(answer));
  for (const BackendAdvice& backend : answer.backends)
    out += fmt::format("{:<20} {:>12} {:>8.2f}x {:>12} {:>6}\n", backend.backend,
                       run_time_text(backend.time_s), backend.speedup, to_text(backend.peak),
                       backend.fits ? "yes" : "no");
  return out;
}

Json answer_json(const Advice& advice, const Answer& answer) {
  const char* loses = losing_part(answer.change);
  Json json{{"kernels", std::string(kernels_of(answer.scenario.training))},
            {"verdict", verdict(advice, answer)},
            {"compressed_steps_share", answer.compressed_share},
            {"wire_change_us", answer.change.wire_us},
            {"compression_change_us", answer.change.compression_us},
            {"optimizer_change_us", answer.change.optimizer_us},
            {"losing_part", loses == nullptr ? Json(nullptr) : Json(loses)},
            {"break_even_nic_bandwidth_Gbps",
             answer.break_even ? Json(answer.break_even->value() * 8e-9) : Json(nullptr)},
            {"pays_at_any_bandwidth", answer.pays_at_any_bandwidth},
            {"cost_usd", answer.cost_usd ? Json(*answer.cost_usd) : Json(nullptr)},
            {"backends", Json::array()}};
  for (const BackendAdvice& backend : answer.backends)
    json["backends"].push_back({{"backend", backend.backend},
                                {"run_time_s", backend.time_s},
                                {"speedup_vs_baseline", backend.speedup},
                                {"peak_bytes_per_gpu", backend.peak.value()},
                                {"fits", backend.fits}});
  return json;
}

}  // namespace

std::string advice_text(const Advice& advice) {
  const Answer& answer = advice.answer;
  const TrainingPlan& training = answer.scenario.training;
  std::string out = judgement(advice, answer);
  out += fmt::format(
      "{:.0f}% of the {} step is exposed communication: no compression can win more than "
      "{:.2f}x.\n",
      advice.exposed_share * 100, advice.baseline, advice.most_speedup);
  if (advice.fused && advice.judged())
    out += fmt::format("\nWith the fused kernels that ship here (--kernels fused):\n{}",
                       judgement(advice, *advice.fused));
  out += fmt::format("\n{}", table_of(answer));
  if (advice.fused) out += table_of(*advice.fused);
  out += fmt::format("backend {}, {} kernels: {}", answer.backends.front().backend,
                     whose_kernels(answer), interval_text(training, answer.forecast));
  if (answer.cost_usd)
    out +=
        fmt::format("\ncost: {:.0f} USD{} against {:.0f} USD\n", *answer.cost_usd,
                    advice.fused && advice.fused->cost_usd
                        ? fmt::format(", with fused kernels {:.0f} USD,", *advice.fused->cost_usd)
                        : "",
                    *advice.baseline_cost_usd);
  out += fmt::format(
      "\n{} GPUs of {}, batch {}, {} steps. Time only: whether the model converges with this "
      "freeze_step is not forecast.\n",
      training.gpus, training.cluster->name, training.batch.train, training.steps);
  for (const Finding& finding : advice.findings)
    out += fmt::format("{}: {} [{}]\n", name_of(finding.severity), finding.message, finding.code);
  return out;
}

std::string advice_json(const Advice& advice) {
  const auto optional = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  Json json{{"schema_version", 1},
            {"tool", "lambcast"},
            {"version", tool_version},
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
  json["stages"] = Json::array();
  for (const StageForecast& stage : advice.answer.forecast.stages)
    json["stages"].push_back({{"name", std::string(name_of(stage.kind))},
                              {"step_time_us", stage.step_time_us},
                              {"step_time_low_us", stage.step_time_low_us},
                              {"step_time_high_us", stage.step_time_high_us},
                              {"step_time_coverage", optional(stage.coverage)},
                              {"communication_calibrated", stage.calibrated}});
  json["findings"] = Json::array();
  for (const Finding& finding : advice.findings)
    json["findings"].push_back({{"severity", std::string(name_of(finding.severity))},
                                {"code", finding.code},
                                {"message", finding.message}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lambcast
