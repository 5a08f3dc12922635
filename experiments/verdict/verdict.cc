#include "experiments/verdict/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <vector>

#include "models/training/run/compressed_share.h"
#include "sim/base/ratio.h"

namespace lambcast {
namespace {

// Code and words of each verdict, in the order of Verdict.
struct VerdictName {
  std::string_view code, words;
};
constexpr VerdictName verdict_names[] = {
    {"does_not_fit", "does not fit"}, {"not_judged", "not judged"}, {"yes", "pays"},
    {"hardly", "no difference"},      {"no", "does not pay"},       {"cannot_tell", "not certain"}};

// Least speed-up that is worth changing a run for.
constexpr double worth_it = 1.05;

std::string points(std::size_t count) {
  return fmt::format("{} point{}", count, count == 1 ? "" : "s");
}

// Formats the verdicts that are not in the opening of the sentence.
std::string others(const VerdictCounts& counts, bool losses, bool untold) {
  std::string out;
  const auto add = [&](Verdict verdict, std::size_t count) {
    if (count > 0) out += fmt::format("; {} in {}", words_of(verdict), count);
  };
  if (losses) add(Verdict::no, counts.no);
  add(Verdict::hardly, counts.hardly);
  if (untold) add(Verdict::cannot_tell, counts.cannot_tell);
  return out;
}

std::string sentence(const VerdictCounts& counts, const RunName& name) {
  const std::size_t all = counts.judged();
  const std::string named = name(counts.best_at);
  const std::string with = named.empty() ? "" : " with " + named;
  const std::string best = to_text(counts.best);
  if (all > 0 && counts.yes == all)
    return fmt::format("Pays in {}{}, most{}: {}.", all > 1 ? "all " : "", points(all), with, best);
  if (counts.yes > 0)
    return fmt::format("Pays in {} of {}, most{}: {}{}.", counts.yes, points(all), with, best,
                       others(counts, true, true));
  if (counts.cannot_tell > 0)
    return fmt::format("Not certain{}: at best{} compression makes the run {} as fast{}.",
                       all == 1 ? "" : fmt::format(" in {} of {}", counts.cannot_tell, points(all)),
                       with, best, others(counts, true, false));
  if (counts.hardly > 0)
    return fmt::format("No difference: at best{} compression makes the run {} as fast{}.", with,
                       best, others(counts, true, false));
  return fmt::format("Does not pay in any point: at best{} compression makes the run {} as fast.",
                     with, best);
}

std::string measure_sentence(const VerdictCounts& counts) {
  const auto most = std::ranges::max_element(counts.measure, {},
                                             [](const auto& measure) { return measure.second; });
  return most == counts.measure.end() ? "" : fmt::format("Measure first: {}.", most->first);
}

bool alike(const VerdictCounts& a, const VerdictCounts& b) {
  return a.yes == b.yes && a.hardly == b.hardly && a.no == b.no && a.cannot_tell == b.cannot_tell &&
         b.best.value < worth_it * a.best.value;
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  return verdict_names[static_cast<std::size_t>(verdict)].code;
}

std::string_view words_of(Verdict verdict) {
  return verdict_names[static_cast<std::size_t>(verdict)].words;
}

std::string_view words_of_code(std::string_view code) {
  const auto* const found = std::ranges::find(verdict_names, code, &VerdictName::code);
  return found == std::end(verdict_names) ? code : found->words;
}

Verdict verdict_of(const Speedup& speedup, double compressed_share, bool fits) {
  if (!fits) return Verdict::does_not_fit;
  if (compressed_share < least_compressed_share) return Verdict::not_judged;
  if (speedup.high < 1) return Verdict::no;
  if (speedup.low > 1) return speedup.value < worth_it ? Verdict::hardly : Verdict::yes;
  return speedup.low > 1 / worth_it && speedup.high < worth_it ? Verdict::hardly
                                                               : Verdict::cannot_tell;
}

std::string why_not_judged(double compressed_share, double steps) {
  return fmt::format(
      "only {:.3g} % of the {} steps compress, too few for a verdict; try: a longer run (--steps), "
      "or "
      "--freeze-step 20%",
      100 * compressed_share, steps);
}

std::string no_warm_up_text() {
  return "it compresses from the first step on, before the variance is known; try: "
         "--freeze-step 20%";
}

WarmUp warm_up_of(double freeze_step, double steps) {
  if (freeze_step <= 1) return WarmUp::none;
  if (freeze_step < std::floor(shortest_warmup_share * steps)) return WarmUp::early;
  // "50%" of an odd number of steps is rounded up by half a step.
  const double longest = longest_warmup_share * steps + 0.5;
  return freeze_step - 1 > longest ? WarmUp::most_of_the_run : WarmUp::usual;
}

bool backend_fails(std::string_view findings) {
  constexpr std::string_view code = "backend-fails";
  for (std::size_t at = findings.find(code); at != std::string_view::npos;
       at = findings.find(code, at + 1)) {
    const std::size_t end = at + code.size();
    if ((at == 0 || findings[at - 1] == ' ') && (end == findings.size() || findings[end] == ' '))
      return true;
  }
  return false;
}

bool LeftOut::add(WarmUp warm_up, bool fails) {
  if (fails)
    ++failing;
  else if (warm_up == WarmUp::none)
    ++no_warm_up;
  else if (warm_up == WarmUp::early)
    ++early;
  else if (warm_up == WarmUp::most_of_the_run)
    ++long_warm_up;
  else
    return false;
  return true;
}

std::string left_out_text(const LeftOut& left_out) {
  std::vector<std::string> said;
  if (left_out.failing > 0)
    said.push_back(fmt::format("{} whose backend ends with an error", left_out.failing));
  if (left_out.no_warm_up > 0)
    said.push_back(
        fmt::format("{} without warm-up (freeze_step 0 or 1): the variance is not yet known",
                    left_out.no_warm_up));
  if (left_out.early > 0)
    said.push_back(fmt::format(
        "{} that freeze in the first {:.0f} % of their steps, earlier than published recipes",
        left_out.early, 100 * shortest_warmup_share));
  if (left_out.long_warm_up > 0)
    said.push_back(fmt::format("{} that warm up for more than {:.0f} % of their steps",
                               left_out.long_warm_up, 100 * longest_warmup_share));
  return fmt::format("{}", fmt::join(said, "; "));
}

void VerdictCounts::add(std::size_t run, const Speedup& speedup, Verdict verdict,
                        std::string_view first) {
  if (verdict == Verdict::does_not_fit || verdict == Verdict::not_judged) return;
  if (judged() == 0 || speedup.value > best.value) {
    best = speedup;
    best_at = run;
  }
  if (verdict == Verdict::yes) ++yes;
  if (verdict == Verdict::hardly) ++hardly;
  if (verdict == Verdict::no) ++no;
  if (verdict != Verdict::cannot_tell) return;
  ++cannot_tell;
  if (first.empty()) return;
  const auto known = measure.find(first);
  ++(known == measure.end() ? measure.emplace(first, 0).first : known)->second;
}

Verdict verdict_of(const VerdictCounts& counts) {
  if (counts.yes > 0) return Verdict::yes;
  if (counts.cannot_tell > 0) return Verdict::cannot_tell;
  if (counts.hardly > 0) return Verdict::hardly;
  return counts.no > 0 ? Verdict::no : Verdict::not_judged;
}

std::string headline_of(const VerdictCounts& counts, const RunName& name) {
  return counts.judged() == 0 ? "" : sentence(counts, name);
}

std::string detail_of(const VerdictCounts& counts, const VerdictCounts& fused,
                      const RunName& name) {
  std::string out = measure_sentence(counts);
  if (fused.judged() == 0 || alike(counts, fused)) return out;
  std::string other = sentence(fused, name);
  other.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(other.front())));
  return out + fmt::format("{}With the fused kernels that ship here (--kernels fused): {}",
                           out.empty() ? "" : " ", other);
}

std::string in_words(const VerdictCounts& counts, const VerdictCounts& fused, const RunName& name) {
  const std::string headline = headline_of(counts, name), detail = detail_of(counts, fused, name);
  return fmt::format("{}{}{}", headline, headline.empty() || detail.empty() ? "" : " ", detail);
}

std::string to_text(const Speedup& speedup) {
  if (!(speedup.low < speedup.high)) return ratio_digits(speedup.value) + "x";
  return fmt::format("{}x ({} to {}x)", ratio_digits(speedup.value), ratio_digits(speedup.low),
                     ratio_digits(speedup.high));
}

}  // namespace lambcast
