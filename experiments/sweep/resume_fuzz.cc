// Resumes a sweep from manifest.json, results.csv and results.sums; lines "----" separate them.
// HASH, VERSION and COLUMNS stand for the values that the current sweep writes.
#include "experiments/output/forecast_output.h"
#include "experiments/sweep/result_row.h"
#include "experiments/sweep/sweep_folder.h"
#include "sim/base/csv.h"
#include "sim/base/fuzz_target.h"
#include "sim/base/temporary_folder.h"

namespace {

using namespace lambcast;

std::string with(std::string text, std::string_view word, const std::string& meaning) {
  const std::size_t at = text.find(word);
  return at == std::string::npos ? text : text.replace(at, word.size(), meaning);
}

SweepPlan small_plan() {
  return plan_sweep(R"(name = "small"
[base]
model = "bert-base"
cluster = "paper-eth40-v100"
micro_batch = 16
steps = 1000
[grid]
optimizer = ["lamb", "onebit_lamb"]
)",
                    "sweep.toml", {});
}

}  // namespace

FUZZ_TARGET(resume, text) {
  static const SweepPlan plan = small_plan();
  const TemporaryFolder folder;
  for (const char* name : {"manifest.json", "results.csv", "results.sums"}) {
    const std::size_t end = std::min(text.find("----\n"), text.size());
    const std::string part(text.substr(0, end));
    text.remove_prefix(std::min(end + 5, text.size()));
    if (!part.empty())
      folder.file(
          name, with(with(with(part, "HASH", plan.text_hash), "VERSION", std::string(tool_version)),
                     "COLUMNS", csv::row(result_columns())));
  }
  SweepFolder rows(folder.path(), plan, {}, true, [](const std::string&) {});
  if (rows.rows() > plan.points.size()) throw std::logic_error("more rows than points");
  rows.finish();
}
