// Reads results.csv and manifest.json as the report does; a line "----" separates them.
#include "experiments/report/page.h"
#include "experiments/report/report.h"
#include "sim/base/fuzz_target.h"

FUZZ_TARGET(results, text) {
  using namespace lambcast;
  const std::size_t end = std::min(text.find("----\n"), text.size());
  may_refuse([&] { report::manifest_html(text.substr(std::min(end + 5, text.size())), "m.json"); });
  const report::Results results =
      report::read_results(csv::Reader::of_text(text.substr(0, end), "results.csv"));
  report::summary_text(results);
  report::page_html(results, {});
}
