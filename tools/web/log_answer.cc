#include "tools/web/log_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "experiments/scenario/run_files.h"
#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/base/json.h"
#include "sim/base/printable.h"
#include "sim/base/table.h"
#include "topologies/cluster.h"
#include "topologies/foreign_description.h"
#include "validate/calibrate/calibrate.h"
#include "validate/calibrate/measured_tables.h"
#include "validate/importers/gpu_of_log.h"
#include "validate/importers/importers.h"
#include "validate/program/level_fit.h"
#include "validate/program/log_against_flags.h"
#include "validate/program/training_log.h"

namespace lambcast {
namespace {

// The description that a log is fitted to.
struct Base {
  std::string text, file;
};

Base base_of(const std::string& cluster) {
  return {cluster_description(cluster), is_path(cluster) ? cluster : cluster + ".toml"};
}

std::string answer(const std::string& cluster, const std::string& report) {
  return json_line({{"cluster_text", cluster}, {"report", report}});
}

// Returns whether the text has the words of a format of collectives. Those of nccl-tests are its
// column.
bool has_collectives(std::string_view text) {
  return text.find("busbw") != text.npos ||
         std::ranges::any_of(validate::importers(), [&](const validate::Importer& each) {
           return !each.words.empty() && text.find(each.words) != text.npos;
         });
}

std::string fitted_to_collectives(const DroppedLog& log, const Base& base) {
  const auto tables = validate::import_measurements(log.text, log.file);
  std::string warning;
  const auto device = Table::parse(base.text, base.file).get_or<std::string>("device", "");
  for (const validate::Measurement& table : tables)
    if (const std::string other = validate::other_gpu(table, device); !other.empty())
      warning = fmt::format("warning: a log of {}, and {} has {}\n", other, base.file, device);
  const Backend backend = validate::backend_of_tables(tables, {});
  const validate::FitSummary summary = validate::calibrate(base.text, base.file, tables, backend);
  return answer(validate::calibrated_cluster(base.text, base.file, "calibrated", summary,
                                             printable(validate::sources_of(tables))),
                warning + validate::brief_report(summary));
}

std::string fitted_to_steps(const TrainingLog& training, const DroppedLog& log, const Base& base,
                            const WhatIf& what_if) {
  std::string filled;
  SourceFigure figure = figure_of(training, log.file, what_if, filled);
  figure.what_if.emplace("steps", "1000");  // the time of a step does not depend on it
  check_against_log(settings_of(training), log.file, figure);
  const LevelFit fit = fit_level({figure});
  return answer(validate::cluster_with_program(base.text, base.file, "calibrated", "", fit.program),
                filled + level_report(fit));
}

constexpr const char* treatments[] = {"applied", "costless", "named"};

}  // namespace

std::string calibrate_answer(const DroppedLog& log, const WhatIf& texts) {
  const std::string& cluster = texts.at("cluster");
  const Base base = base_of(cluster);
  if (has_collectives(log.text)) return fitted_to_collectives(log, base);
  const TrainingLog training = read_training_log(log.text, log.file);
  try {
    return fitted_to_steps(training, log, base, {{"cluster", cluster}});
  } catch (const Error&) {
    return fitted_to_steps(training, log, base, texts);
  }
}

std::string inputs_answer(const WhatIf& texts) {
  Catalog catalog;
  Json files = Json::array();
  for (const InputLedger& ledger : input_ledgers(texts, catalog)) {
    Json keys = Json::array();
    for (const LedgerEntry& entry : ledger.entries)
      keys.push_back({{"key", entry.key},
                      {"line", entry.line},
                      {"treatment", treatments[static_cast<int>(entry.treatment)]},
                      {"reason", entry.reason}});
    files.push_back({{"file", ledger.file}, {"replaced", ledger.replaced}, {"keys", keys}});
  }
  return json_line(files);
}

}  // namespace lambcast
