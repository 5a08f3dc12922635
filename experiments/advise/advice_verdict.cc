#include "experiments/advise/advice_verdict.h"

#include <fmt/format.h>

#include "experiments/output/forecast_output.h"
#include "experiments/output/measure_first.h"
#include "experiments/scenario/run_length.h"
#include "sim/base/ratio.h"

namespace lambcast {
namespace {

// Names the measurement that would narrow the verdict most.
std::string measure_first(const Answer& answer) {
  const RatioInterval& speedup = answer.merit();
  if (speedup.shares.empty()) return "";
  const ErrorShare& widest = speedup.shares.front();
  const std::string measurement = measurement_for(widest.source, answer.scenario.training);
  if (measurement.empty()) return "";
  return fmt::format(" Measure first: {}; its error alone spans {:.2f} to {:.2f}x.", measurement,
                     widest.low, widest.high);
}

// Formats memory in GiB, in which vendors state the memory of a GPU, and in GB.
std::string in_gib(Bytes bytes) {
  return fmt::format("{:.1f} GiB ({})", bytes.value() / (1 << 30), to_text(bytes));
}

// Names the judged optimizer, and the optimizer it replaces if that one has no 1-bit form.
std::string judged_text(const Advice& advice) {
  if (!advice.family) return advice.optimizer;
  return fmt::format("{} (the 1-bit form of {}, since {} has none)", advice.optimizer,
                     *advice.family, advice.plain_optimizer);
}

// Describes the backend, kernels and assumptions that a verdict is for.
std::string setting_of(const Advice& advice, const Answer& answer) {
  std::string out =
      fmt::format("{}, {} kernels", answer.backends.front().backend, whose_kernels(answer));
  if (advice.warmup_assumed)
    out += fmt::format(" and a warm-up of {} of the run (assumed)", assumed_warmup);
  if (!gives_length(answer.scenario.asked))
    out += fmt::format(", over {} steps (assumed)", answer.forecast().run.steps);
  return out;
}

// Formats the verdict if two changes are compared, with the gain of each.
std::string verdict_on_top(const Advice& advice, const Answer& answer) {
  const PlainStep& plain = *answer.plain;
  const RatioInterval& gain = plain.compression;
  const std::string first = advice.without_zero ? "Turn ZeRO off" : "Take " + plain.name;
  const Verdict verdict = answer.verdict();
  const std::string ratio =
      gain.value < 1 ? fmt::format("takes {} ({} to {})", times_as_long(1 / gain.value),
                                   ratio_digits(1 / gain.high), ratio_digits(1 / gain.low))
                     : fmt::format("is {} as fast", ratio_text(gain));
  return fmt::format(
      "{}: {} is {} as fast as {}. Compression on top ({}) {}: the run then {}, with backend {}.{}",
      first, plain.name, ratio_text(plain.speedup), answer.against, judged_text(advice),
      verdict == Verdict::hardly        ? "makes no difference"
      : verdict == Verdict::cannot_tell ? "is not certain to pay"
                                        : words_of(verdict),
      ratio, setting_of(advice, answer),
      verdict == Verdict::cannot_tell ? measure_first(answer) : "");
}

}  // namespace

const char* whose_kernels(const Answer& answer) {
  return answer.scenario.training.kernels == Kernels::fused ? "fused" : "DeepSpeed's unfused";
}

std::string verdict_text(const Advice& advice, const Answer& answer) {
  const BackendAdvice& best = answer.backends.front();
  const std::string optimizer = judged_text(advice);
  const RatioInterval& speedup = best.speedup;
  const std::string setting = setting_of(advice, answer);
  switch (answer.verdict()) {
    case Verdict::does_not_fit:
      return fmt::format(
          "Does not fit with a micro batch of {}{}: {} needs {} a GPU, and {} has {}; {} needs {}.",
          answer.scenario.training.batch.micro,
          answer.scenario.asked.contains("micro_batch") ? "" : " (not given: --micro-batch)",
          optimizer, in_gib(best.peak), answer.scenario.training.device->name,
          in_gib(answer.scenario.training.device->memory_capacity), advice.baseline,
          in_gib(advice.baseline_peak));
    case Verdict::not_judged:
      return fmt::format("Not judged: {}.", answer.why_not_judged);
    default:
      break;
  }
  if (answer.plain_gains()) return verdict_on_top(advice, answer);
  switch (answer.verdict()) {
    case Verdict::no:
      return fmt::format("Does not pay: {} takes {} as {} ({} to {}), with backend {}.", optimizer,
                         times_as_long(1 / speedup.value), answer.against,
                         ratio_digits(1 / speedup.high), ratio_digits(1 / speedup.low), setting);
    case Verdict::hardly:
      return fmt::format("No difference: {} is {} as fast as {}, with backend {}.", optimizer,
                         ratio_text(speedup), answer.against, setting);
    case Verdict::yes:
      return fmt::format("Pays: {} makes the run {} as fast as {}, with backend {}.", optimizer,
                         ratio_text(speedup), answer.against, setting);
    default:
      break;
  }
  return fmt::format("Not certain: {} is {} as fast as {}, with backend {}.{}", optimizer,
                     ratio_text(speedup), answer.against, setting, measure_first(answer));
}

}  // namespace lambcast
