#include "experiments/advise/advice_verdict.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "experiments/advise/advice_list.h"
#include "experiments/advise/advice_output.h"
#include "sim/base/csv.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

// BERT-Large at 16 samples a GPU, with a warm-up of a sixth of the run.
WhatIf run_on(const char* cluster, const char* gpus) {
  return {{"model", "bert-large"}, {"cluster", cluster},    {"gpus", gpus},
          {"optimizer", "adam"},   {"micro_batch", "16"},   {"grad_accum", "1"},
          {"steps", "6000"},       {"freeze_step", "16.7%"}};
}

TEST_CASE(
    "advice: no part wins if there is no difference, and only by expected times if not certain") {
  Catalog catalog;
  int unchanged = 0, open = 0;
  for (const char* cluster : {"commodity-25gbe", "commodity-100gbe", "hgx-h100-ndr", "dgx2h-v100"})
    for (const char* gpus : {"16", "64"})
      for (const char* type : {"onebit_lamb", "onebit_adam"}) {
        WhatIf asked = run_on(cluster, gpus);
        // With many accumulated micro batches, communication is a small share of the step, so
        // compression saves little.
        if (std::string_view(type) == "onebit_adam") asked["grad_accum"] = "64";
        asked["optimizer"] = type;
        const Advice advice = advise(asked, catalog);
        const std::string text = explain_advice(advice, "backends");
        const std::size_t middle = text.find("\nfused kernels");
        INFO(cluster << " " << gpus << " " << type << "\n" << text);
        REQUIRE(middle != std::string::npos);
        for (const auto& [answer, part] : {std::pair(&advice.answer, text.substr(0, middle)),
                                           std::pair(&*advice.fused, text.substr(middle))}) {
          if (answer->verdict() == Verdict::hardly) {
            ++unchanged;
            CHECK_THAT(part, Contains(", too little to matter.") && !Contains("most of it"));
          } else if (answer->verdict() == Verdict::cannot_tell) {
            ++open;
            CHECK_THAT(part, Contains(": by the expected times ") && Contains(" together"));
          }
        }
      }
  CHECK(unchanged > 0);
  CHECK(open > 0);
}

TEST_CASE("advice: the gain of turning ZeRO off is not counted as compression's") {
  Catalog catalog;
  WhatIf asked = run_on("commodity-10gbe", "32");
  asked["grad_accum"] = "64";  // the exchange hardly matters, but the weight gathers do
  asked["zero_stage"] = "3";
  asked["cluster.usd_per_gpu_hour"] = "2";
  asked["kernels"] = "deepspeed";
  const Advice advice = advise(asked, catalog);
  INFO(advice_text(advice));
  const Answer& answer = advice.answer;
  REQUIRE(answer.plain_gains());
  CHECK(answer.plain->speedup.value == Approx(advice.without_zero->speedup.value));
  CHECK(answer.merit().value * answer.plain->speedup.value ==
        Approx(answer.speedup().value).epsilon(1e-9));
  CHECK(answer.verdict() ==
        verdict_of({answer.merit().value, answer.merit().low, answer.merit().high},
                   answer.compressed_share, true));
  CHECK_THAT(advice_text(advice),
             Catch::StartsWith("Turn ZeRO off: adam without ZeRO is ") &&
                 Contains("Compression on top (onebit_adam without ZeRO) pays: the run then is ") &&
                 Contains("kernels, speed-ups against adam with ZeRO stage 3\n") &&
                 !Contains("no compression makes the run more"));

  // A list of advice judges only compression, too.
  const AdviceList list = advise_all(asked, {{"seq_len", {"128"}}}, catalog);
  const csv::Table rows = csv::parse(advice_list_csv(list), "advice");
  CHECK(rows.number(0, "speedup") == Approx(answer.merit().value).epsilon(1e-9));
  // A list has the time and cost of a run, as one answer has.
  CHECK(rows.number(0, "run_time_s") == Approx(answer.forecast().run.time_s).epsilon(1e-9));
  CHECK(rows.number(0, "run_time_low_s") < rows.number(0, "run_time_s"));
  CHECK(rows.number(0, "run_time_s") < rows.number(0, "run_time_high_s"));
  REQUIRE(answer.forecast().run.cost_usd);
  CHECK(rows.number(0, "cost_usd") == Approx(*answer.forecast().run.cost_usd).epsilon(1e-9));
  CHECK_THAT(advice_list_text(list), Contains("USD"));
}

TEST_CASE("advice: a list whose points never compress says why they are not judged") {
  Catalog catalog;
  WhatIf asked = run_on("dgx-a100-80g", "32");
  asked.insert_or_assign("optimizer", "onebit_adam");
  asked.insert_or_assign("steps", "1000");
  asked.insert_or_assign("freeze_step", "1000");
  const std::string text = advice_list_text(advise_all(asked, {{"seq_len", {"128"}}}, catalog));
  CHECK_THAT(text, Contains("not judged at 128") && Contains("--freeze-step 20%") &&
                       !Contains("so all are judged"));
}

TEST_CASE("advice: exchanges that ZeRO stage 3 refuses share one line by reason") {
  Catalog catalog;
  WhatIf asked = run_on("dgx-a100-80g", "32");
  asked["zero_stage"] = "3";
  const std::string text = explain_advice(advise(asked, catalog), "exchanges");
  std::size_t refusals = 0;
  for (std::size_t at = text.find(": not here: --exchange"); at != std::string::npos;
       at = text.find(": not here: --exchange", at + 1))
    ++refusals;
  INFO(text);
  CHECK(refusals >= 1);
  // At most three reasons: missing blocks, weights that differ between exchanges, and neighbours.
  CHECK(refusals <= 3);
}

TEST_CASE("advice: notes that change nothing for the reader are left out") {
  Catalog catalog;
  const auto notes = [&](const char* cluster) {
    const Advice advice = advise(run_on(cluster, "64"), catalog);
    std::vector<std::string> codes;
    for (const Finding& finding : advice.findings) codes.push_back(finding.code);
    return std::pair(advice.answer.verdict(), codes);
  };
  // The release of DeepSpeed is named only if its 1-bit optimizers are advised.
  const auto [slow, with_release] = notes("commodity-10gbe");
  CHECK(slow == Verdict::yes);
  CHECK(std::ranges::count(with_release, "onebit-removed") == 1);
  CHECK(std::ranges::count(with_release, "skipped-steps") == 0);  // both runs skip the same steps
  const auto [fast, without] = notes("hgx-h100-ndr");
  CHECK((fast == Verdict::no || fast == Verdict::hardly));
  CHECK(std::ranges::count(without, "onebit-removed") == 0);
  CHECK(std::ranges::count(without, "skipped-steps") == 0);
}

TEST_CASE("advice: the verdict is based on the whole interval") {
  struct Row {
    double low, value, high;
    Verdict verdict;
    bool fits = true;
    double share = 1;
  };
  const std::vector<Row> rows{
      {1.5, 2, 3, Verdict::does_not_fit, false, 0},
      {1.5, 2, 3, Verdict::not_judged, true, least_compressed_share * 0.99},
      {1.5, 2, 3, Verdict::yes, true, least_compressed_share},
      {0.5, 0.9, 0.999, Verdict::no},
      {0.5, 0.9, 1, Verdict::cannot_tell},
      {1, 1.2, 1.3, Verdict::cannot_tell},
      {1.001, 1.06, 1.1, Verdict::yes},
      {1.001, 1.05, 1.1, Verdict::yes},
      // A certain but small gain, then an uncertain sign with a small effect either way.
      {1.001, 1.049, 1.1, Verdict::hardly},
      {0.96, 1, 1.04, Verdict::hardly},
      {0.96, 1, 1.051, Verdict::cannot_tell},
      {0.95, 1, 1.04, Verdict::cannot_tell},
  };
  for (const Row& row : rows) {
    INFO(row.low << " to " << row.high);
    Answer answer;
    answer.backends.resize(1);
    answer.backends.front().fits = row.fits;
    answer.backends.front().speedup = {row.value, row.low, row.high, {}};
    answer.compressed_share = row.share;
    CHECK(name_of(answer.verdict()) == name_of(row.verdict));
  }
}

}  // namespace
}  // namespace lambcast
