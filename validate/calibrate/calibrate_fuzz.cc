// Input of `calibrate`: tables of any tool, separated by lines "----", fitted to a shipped cluster.
// The output must be a description that can be read.
#include "validate/calibrate/calibrate.h"

#include <cmath>

#include "sim/base/fuzz_target.h"
#include "validate/importers/importers.h"

FUZZ_TARGET(calibrate, text) {
  using namespace lambcast;
  using namespace lambcast::validate;
  std::vector<Measurement> tables;
  std::size_t rows = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find("----\n"), text.size());
    for (Measurement& table : import_measurements(text.substr(0, end), "log",
                                                  {.operation = {}, .ranks = 8, .nodes = 2})) {
      rows += table.rows.size();
      if (table.ranks > 64) return;  // valid, but slow to forecast
      tables.push_back(std::move(table));
    }
    text.remove_prefix(std::min(end + 5, text.size()));
  }
  if (rows > 12 || tables.size() > 3) return;
  static const std::string base = cluster_text("commodity-10gbe");
  const Backend backend =
      tables.empty() ? Backend::nccl : tables[0].backend.value_or(Backend::nccl);
  const FitSummary summary = calibrate(base, "base.toml", tables, backend);
  for (const FittedParameter& parameter : summary.parameters)
    if (!std::isfinite(parameter.value) || !(parameter.low <= parameter.value) ||
        !(parameter.value <= parameter.high))
      throw std::logic_error("a parameter outside its interval");
  if (brief_report(summary).empty()) throw std::logic_error("a fit without a report");
  const std::string fitted = calibrated_cluster(base, "base.toml", "fuzz", summary, "fuzz");
  try {
    decode_cluster(Table::parse(fitted, "fitted.toml"), "fitted.toml");
  } catch (const Error& error) {
    throw std::logic_error(error.what());  // a fault of the program, not of the input
  }
}
