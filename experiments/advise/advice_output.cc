#include "experiments/advise/advice_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "experiments/advise/advice_verdict.h"
#include "experiments/advise/break_even_text.h"
#include "experiments/output/cell.h"
#include "experiments/output/forecast_explanation.h"
#include "experiments/output/forecast_output.h"
#include "models/training/plan/exchange_name.h"
#include "sim/base/counted.h"

namespace lambcast {
namespace {

// Parts of a step that compression changes.
constexpr std::array changing{PartGroup::wire, PartGroup::compression, PartGroup::optimizer};

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

std::string range_cell(const RatioInterval& ratio) {
  return fmt::format("{:.2f} to {:.2f}", ratio.low, ratio.high);
}

std::string backend_row(const BackendAdvice& backend, const std::string& name) {
  const std::string range =
      time_range(backend.time_s, backend.forecast.run.time_low_s, backend.forecast.run.time_high_s);
  return fmt::format("{:<17} {:>8} {:>14} {:>7.2f}x {:>12} {:>9} {:>4}\n", name,
                     time_cell(backend.time_s), range.substr(0, range.rfind(' ')),
                     backend.speedup.value, range_cell(backend.speedup), bytes_cell(backend.peak),
                     backend.fits ? "yes" : "no");
}

std::string table_of(const Answer& answer) {
  // If the answer compares two changes, the table shows the gain of both together.
  const std::string against =
      answer.plain_gains() ? fmt::format(", speed-ups against {}", answer.against) : "";
  std::string out = fmt::format("{} kernels{}\n{:<17} {:>8} {:>14} {:>8} {:>12} {:>9} {:>4}\n",
                                whose_kernels(answer), against, "backend", "run", "within",
                                "speed-up", "within", "memory", "fits");
  for (const BackendAdvice& backend : answer.backends) out += backend_row(backend, backend.backend);
  return out;
}

// Formats the backends, the best backend of the fused kernels, and the names of the backends that
// cannot run.
std::string backends_text(const Advice& advice) {
  std::string out = "\n" + table_of(advice.answer);
  if (advice.fused) {
    const BackendAdvice& best = advice.fused->backends.front();
    out += backend_row(best, "fused " + best.backend);
  }
  std::vector<std::string> refused;
  for (const auto& [reason, backends] : advice.answer.refused)
    refused.insert(refused.end(), backends.begin(), backends.end());
  if (!refused.empty())
    out += fmt::format("not here: {} (--explain backends)\n", fmt::join(refused, ", "));
  return out;
}

// Returns whether backend_details() states the change of a step and the break-even.
bool explains(const Advice& advice, const Answer& answer) {
  return advice.judged() && answer.backends.front().fits;
}

// Describes how compression changes a step, what limits its gain, and what the interval is based
// on, for each implementation of the kernels.
std::string backend_details(const Advice& advice) {
  const Answer& answer = advice.answer;
  std::string out;
  for (const Answer* of : {&answer, advice.fused ? &*advice.fused : nullptr}) {
    if (of == nullptr) continue;
    out += table_of(*of) + verdict_text(advice, *of) + "\n";
    if (explains(advice, *of)) out += change_sentence(*of) + "\n" + break_even_sentence(*of) + "\n";
    out += interval_text(of->scenario.training, of->forecast()) + "\n";
  }
  if (!answer.plain_gains())
    out += fmt::format(
        "{:.0f}% of a step of {} is exposed communication: by the expected times no compression "
        "makes the run more than {:.2f}x as fast.\n",
        advice.exposed_share * 100, advice.baseline, advice.most_speedup);
  for (const auto& [reason, backends] : answer.refused)
    out += fmt::format("{}: not here: {}\n", fmt::join(backends, ", "), reason);
  return out;
}

std::string break_even_text(const ExchangeAdvice& advice) {
  if (!advice.pays) return "";
  if (advice.pays->at)
    return fmt::format("{}{}", advice.pays->pays_above ? '>' : '<',
                       number_cell(advice.pays->at->value() * 8e-9));
  // Beyond the searched range, the row's own speed-up decides on which side of 1 it is.
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

std::string exchange_row(const ExchangeAdvice& of) {
  constexpr std::size_t width = 15;
  const std::string name = shown_name(of.name);
  return fmt::format("{:<{}} {:>8} {:>6} {:>5.2f}x {:>12} {:>8}  {}\n",
                     name.size() <= width ? name : fmt::format("{}\n{:{}}", name, "", width), width,
                     bytes_cell(Bytes(of.wire_bytes)), coding_cell(of.kernels_us), of.speedup.value,
                     range_cell(of.speedup), bytes_cell(of.peak),
                     of.fits ? break_even_text(of) : "DOES NOT FIT");
}

std::string exchange_table(const std::vector<ExchangeAdvice>& exchanges) {
  std::string out = fmt::format("{:<15} {:>8} {:>6} {:>6} {:>12} {:>8}  {}\n", "exchange", "sent",
                                "coding", "faster", "within", "memory", "pays at") +
                    fmt::format("{:<15} {:>8} {:>6} {:>6} {:>12} {:>8}  {}\n", "", "a step", "(ms)",
                                "", "", "a GPU", "Gbit/s of NICs");
  for (const ExchangeAdvice& of : exchanges)
    if (of.refused.empty()) out += exchange_row(of);
  return out;
}

// Formats the fastest exchanges that fit, and the exchange that the answer is about.
std::string fastest_exchanges(const Advice& advice) {
  constexpr std::size_t most = 3;
  std::vector<ExchangeAdvice> shown;
  std::size_t fastest = 0;
  for (const ExchangeAdvice& of : advice.exchanges) {
    const bool fits = of.refused.empty() && of.fits;
    if ((fits && fastest++ < most) || of.name == advice.optimizer) shown.push_back(of);
  }
  if (fastest == 0) return "No exchange fits in memory: --explain exchanges\n";
  return fmt::format("\n{}{} more, and why some do not run here: --explain exchanges\n",
                     exchange_table(shown), advice.exchanges.size() - shown.size());
}

std::string exchange_details(const Advice& advice) {
  std::string out = exchange_table(advice.exchanges);
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

// Describes the effect of turning ZeRO off without compression, and names the fastest of the three
// runs.
std::string without_zero_text(const Advice& advice) {
  if (!advice.without_zero) return "";
  const WithoutZero& plain = *advice.without_zero;
  const Device& device = *advice.answer.scenario.training.device;
  const std::string name = advice.plain_optimizer + " without ZeRO";
  std::string out = name;
  // If there is a gain, the verdict states it already.
  if (!advice.answer.plain_gains())
    out += fmt::format(" is {} as fast as {}", ratio_text(plain.speedup), advice.baseline);
  if (!plain.fits)
    return out + fmt::format(", but needs {} a GPU: {} has {}.\n", to_text(plain.peak), device.name,
                             to_text(device.memory_capacity));
  const BackendAdvice& onebit = advice.answer.backends.front();
  const double fastest_s = std::min(plain.time_s, advice.baseline_time_s);
  std::string fastest = plain.time_s < advice.baseline_time_s ? name : advice.baseline;
  if (onebit.fits && onebit.time_s < fastest_s) fastest = advice.optimizer;
  if (!advice.answer.plain_gains()) out += " and";
  return out + fmt::format(" fits, in {} a GPU: the fastest of the three that fits is {}.\n",
                           to_text(plain.peak), fastest);
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
    return fmt::format("cost: {}\n", no_price_text());
  const auto of = [](const Answer& answer) {
    const RunForecast& run = answer.forecast().run;
    return money(run, *answer.cost_usd, run.time_low_s, run.time_high_s);
  };
  std::string out = "cost: " + of(advice.answer);
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

std::optional<PartGroup> losing_part(const PartTimes& change) {
  const PartGroup worst =
      *std::ranges::max_element(changing, {}, [&](PartGroup part) { return change[part]; });
  return change[worst] > 0 ? std::optional(worst) : std::nullopt;
}

std::string advice_text(const Advice& advice) {
  const Answer& answer = advice.answer;
  const TrainingPlan& training = answer.scenario.training;
  std::string out = verdict_text(advice, answer) + "\n";
  if (explains(advice, answer))
    out += change_sentence(answer) + "\n" + break_even_sentence(answer) + "\n";
  out += without_zero_text(advice);
  if (advice.fused && explains(advice, *advice.fused))
    out += fmt::format("With the fused kernels that ship here (--kernels fused): {}, {}\n",
                       words_of(advice.fused->verdict()), ratio_text(advice.fused->merit()));
  out += backends_text(advice) + cost_text(advice) + fastest_exchanges(advice);
  out += fmt::format(
      "\n{} of {}, batch {}, {}. Time only: whether the model converges with this "
      "freeze_step is not forecast.\n",
      counted(training.gpus, "GPU"), training.cluster->name, training.batch.train,
      counted(training.steps, "step"));
  return out + findings_text(advice.findings);
}

const std::vector<std::string>& advice_explanation_names() {
  static const std::vector<std::string> names{"backends", "exchanges", "notes"};
  return names;
}

std::string explain_advice(const Advice& advice, std::string_view what) {
  if (what == "backends") return backend_details(advice);
  if (what == "exchanges") return exchange_details(advice);
  return notes_text(advice.findings);
}

}  // namespace lambcast
