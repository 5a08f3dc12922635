#include "validate/replay/source.h"

#include <fmt/format.h>

#include <algorithm>

#include "embedded/source_files.h"
#include "embedded/source_row_files.h"
#include "sim/base/error.h"
#include "sim/base/file.h"

namespace lambcast {
namespace {

std::optional<RowExpression> find_expression(const Table& table, const std::string& key) {
  if (!table.has(key)) return std::nullopt;
  return RowExpression::parse(table.words(key).front(), table.where(key));
}

// Reads the keys of a section, each with its template.
void read_templates(const Table& section, const std::string& prefix,
                    std::vector<std::pair<std::string, RowTemplate>>& keys) {
  for (const std::string& key : section.keys())
    keys.emplace_back(prefix + key,
                      RowTemplate::parse(section.words(key).front(), section.where(key)));
}

std::optional<ErrorLimit> read_limit(const Table& limits, const std::string& key) {
  if (!limits.has(key)) return std::nullopt;
  const Table limit = limits.table(key);
  return ErrorLimit{limit.get<double>("median"), limit.get<double>("p90")};
}

bool rate_of_arithmetic(Quantity quantity) {
  return quantity == Quantity::tflops_per_gpu || quantity == Quantity::mfu_pct;
}

std::string preset_name(std::string_view file) {
  file.remove_prefix(file.rfind('/') + 1);
  return std::string(file.substr(0, file.rfind('.')));
}

std::string_view text_of(std::span<const EmbeddedFile> files, const std::string& name) {
  for (const EmbeddedFile& file : files)
    if (preset_name(file.name) == name) return file.text;
  return {};
}

}  // namespace

const std::vector<std::string>& quantity_names() {
  static const std::vector<std::string> names{
      "step_time_s",      "samples_per_s", "tokens_per_s", "tokens_per_gpu_s",
      "tflops_per_gpu",   "mfu_pct",       "memory_gib",   "layer_forward_s",
      "layer_backward_s", "days",          "run_time_s"};
  return names;
}

std::string_view name_of(Quantity quantity) {
  return quantity_names()[static_cast<std::size_t>(quantity)];
}

std::string_view unit_of(Quantity quantity) {
  constexpr std::string_view units[] = {"s",           "samples/s", "tokens/s", "tokens/s/GPU",
                                        "TFLOP/s/GPU", "%",         "GiB",      "s",
                                        "s",           "days",      "s"};
  return units[static_cast<std::size_t>(quantity)];
}

Source::Measured Source::read_measured(const Table& entry) {
  Measured measured;
  measured.column = entry.get<std::string>("column");
  measured.quantity = static_cast<Quantity>(entry.choice("quantity", quantity_names()));
  measured.value = find_expression(entry, "value");
  measured.when = find_expression(entry, "when");
  measured.unless = entry.get_or<std::string>("unless", "");
  measured.stage = entry.get_or<std::string>("stage", "");
  measured.parts = entry.get_or<std::vector<std::string>>("parts", {});
  measured.without = entry.get_or<std::vector<std::string>>("without", {});
  measured.flops_per_sample = find_expression(entry, "flops_per_sample");
  measured.peak_tflops = find_expression(entry, "peak_tflops");
  measured.samples = find_expression(entry, "samples");
  measured.steps = find_expression(entry, "steps");
  measured.pauses = find_expression(entry, "pauses");
  if (entry.has("count"))
    measured.count = static_cast<FlopsCount>(entry.choice("count", {"model", "causal", "full"}));
  if (rate_of_arithmetic(measured.quantity) &&
      entry.has("count") == measured.flops_per_sample.has_value())
    fail_input(entry.where("quantity"), "needs one of count and flops_per_sample");
  if ((measured.quantity == Quantity::mfu_pct) != measured.peak_tflops.has_value())
    fail_input(entry.where("peak_tflops"), "is used only with mfu_pct");
  if ((measured.quantity == Quantity::days) != measured.samples.has_value())
    fail_input(entry.where("samples"), "is required with days, and allowed only with it");
  if ((measured.quantity == Quantity::run_time_s) != measured.steps.has_value())
    fail_input(entry.where("steps"), "is required with run_time_s, and allowed only with it");
  if (measured.pauses && !measured.steps)
    fail_input(entry.where("pauses"), "stand between the steps of a run_time_s");
  if (entry.has("what_if")) read_templates(entry.table("what_if"), "", measured.what_if);
  return measured;
}

void Source::read_names(const Table& names) {
  for (const std::string& list : names.keys()) {
    const Table words = names.table(list);
    for (const std::string& word : words.keys()) names_[list][word] = words.words(word).front();
  }
}

Source Source::parse(std::string_view text, const std::string& name) {
  const Table file = Table::parse(text, name + ".toml");
  Source source;
  source.name_ = name;
  source.where_ = file.where();
  source.title_ = file.get<std::string>("title");
  if (file.get<std::string>("citation").empty()) fail_input(file.where("citation"), "is empty");
  source.case_ = RowTemplate::parse(file.get<std::string>("case"), file.where("case"));
  if (file.has("machine"))
    source.machine_ = RowTemplate::parse(file.get<std::string>("machine"), file.where("machine"));
  source.ignored_ = file.get_or<std::vector<std::string>>("ignored", {});
  source.fitted_ = find_expression(file, "fitted");
  source.read_names(file.table("names"));
  const Table let = file.table("let");
  for (const std::string& key : let.keys()) {
    RowExpression value = RowExpression::parse(let.words(key).front(), let.where(key));
    std::set<std::string> used, lists;
    value.collect(used, lists);
    for (const std::string& name_used : used)
      if (let.has(name_used) && !source.let_.contains(name_used))
        fail_input(let.where(key),
                   fmt::format("uses '{}', which is not defined before", name_used));
    source.let_.emplace(key, std::move(value));
  }
  read_templates(file.table("what_if"), "", source.what_if_);
  read_templates(file.table("model"), "model.", source.what_if_);
  read_templates(file.table("cluster"), "cluster.", source.what_if_);
  for (const Table& refusal : file.tables("refuse"))
    source.refusals_.push_back(
        {RowExpression::parse(refusal.get<std::string>("when"), refusal.where("when")),
         refusal.get<std::string>("why")});
  for (const Table& entry : file.tables("measured"))
    source.measured_.push_back(read_measured(entry));
  if (source.measured_.empty())
    fail_input(file.where("measured"), "is missing: there is nothing to compare");
  const Table limits = file.table("limits");
  source.time_limit_ = read_limit(limits, "time");
  source.memory_limit_ = read_limit(limits, "memory");
  file.finish();
  std::set<std::string> names, lists;
  source.collect(names, lists);
  for (const std::string& list : lists)
    if (!source.names_.contains(list))
      fail_input(file.where("names"), fmt::format("has no list '{}'", list));
  return source;
}

// Names that are not defined in the mapping are columns.
void Source::collect(std::set<std::string>& names, std::set<std::string>& lists) const {
  std::set<std::string> all{ignored_.begin(), ignored_.end()};
  case_.collect(all, lists);
  if (machine_) machine_->collect(all, lists);
  if (fitted_) fitted_->collect(all, lists);
  for (const auto& [key, value] : let_) value.collect(all, lists);
  for (const auto& [key, value] : what_if_) value.collect(all, lists);
  for (const Refusal& refusal : refusals_) refusal.when.collect(all, lists);
  for (const Measured& measured : measured_) {
    all.insert(measured.column);
    if (!measured.unless.empty()) all.insert(measured.unless);
    for (const auto* part :
         {&measured.value, &measured.when, &measured.flops_per_sample, &measured.peak_tflops,
          &measured.samples, &measured.steps, &measured.pauses})
      if (*part) (*part)->collect(all, lists);
    for (const auto& [key, value] : measured.what_if) value.collect(all, lists);
  }
  for (const std::string& name : all)
    if (!let_.contains(name)) names.insert(name);
}

void Source::check_columns(const csv::Table& table) const {
  std::set<std::string> columns, lists;
  collect(columns, lists);
  const std::set<std::string> ignored(ignored_.begin(), ignored_.end());
  for (const std::string& column : columns)
    if (!ignored.contains(column) && !table.has(column))
      fail_input({table.name, 0, {}},
                 fmt::format("has no column '{}', which rows of {} have", column, name_));
  for (const std::string& column : table.header)
    if (!columns.contains(column))
      fail_input({table.name, 0, column}, fmt::format("is not a column of {}", name_),
                 fmt::format("{}", fmt::join(columns, ", ")));
}

RowScope Source::scope_of(const csv::Table& table, std::size_t row) const {
  return {[this, &table, row](const std::string& name) {
            const auto defined = let_.find(name);
            return defined == let_.end() ? table.text(row, name)
                                         : defined->second.evaluate(scope_of(table, row));
          },
          [this](const std::string& list, const std::string& word) {
            const auto& words = names_.at(list);
            const auto found = words.find(word);
            if (found == words.end())
              throw Error(Exit::usage, fmt::format("{} have no '{}'", list, word));
            return found->second;
          }};
}

std::string Source::refusal_of(const RowScope& scope) const {
  for (const Refusal& refusal : refusals_)
    if (refusal.when.holds(scope)) return refusal.why;
  return {};
}

void Source::add_figure(const csv::Table& table, std::size_t row, const Measured& measured,
                        std::vector<SourceFigure>& figures) const {
  const RowScope scope = scope_of(table, row);
  if (table.text(row, measured.column).empty() ||
      (!measured.unless.empty() && !table.text(row, measured.unless).empty()) ||
      (measured.when && !measured.when->holds(scope)))
    return;
  SourceFigure& figure = figures.emplace_back();
  figure.source = name_;
  figure.row = static_cast<int>(row) + 1;
  figure.quantity = measured.quantity;
  figure.stage = measured.stage;
  figure.count = measured.count;
  figure.parts = measured.parts;
  figure.without = measured.without;
  try {
    figure.name = case_.evaluate(scope);
    if (machine_) figure.machine = machine_->evaluate(scope);
    figure.measured = measured.value ? measured.value->number(scope)
                                     : number_of(table.text(row, measured.column), measured.column);
    if (!(figure.measured > 0))
      throw Error(Exit::usage, fmt::format("{} must be above zero", measured.column));
    figure.refused = refusal_of(scope);
    if (!figure.refused.empty()) return;
    for (const auto* keys : {&what_if_, &measured.what_if})
      for (const auto& [key, value] : *keys)
        if (std::string word = value.evaluate(scope); !word.empty())
          figure.what_if.insert_or_assign(key, std::move(word));
    if (measured.flops_per_sample)
      figure.flops_per_sample = measured.flops_per_sample->number(scope);
    if (measured.peak_tflops) figure.peak_tflops = measured.peak_tflops->number(scope);
    if (measured.samples) figure.samples = measured.samples->number(scope);
    if (measured.steps) figure.steps = measured.steps->number(scope);
    if (measured.pauses) figure.pauses_s = measured.pauses->number(scope);
    figure.fitted = fitted_ && fitted_->holds(scope);
  } catch (const Error& error) {
    figure.refused = error.what();
  }
}

std::vector<SourceFigure> Source::figures(const csv::Table& table) const {
  check_columns(table);
  std::vector<SourceFigure> figures;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::size_t before = figures.size();
    for (const Measured& measured : measured_) add_figure(table, row, measured, figures);
    if (figures.size() > before) continue;
    SourceFigure& none = figures.emplace_back();
    none.source = name_;
    none.row = static_cast<int>(row) + 1;
    none.refused = "this row has no measured value";
  }
  return figures;
}

csv::Table parse_rows(std::string_view text, const std::string& name) {
  std::string rows;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    // A comment leaves an empty line, so that errors name the right line.
    rows += text.front() == '#' ? "\n" : text.substr(0, end);
    text.remove_prefix(end);
  }
  csv::Table table = csv::parse(rows, name);
  if (table.rows.empty()) fail_input({name, 0, {}}, "holds no rows");
  return table;
}

std::vector<std::string> source_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : source_files()) names.push_back(preset_name(file.name));
  return names;
}

Source load_source(const std::string& name) {
  if (is_path(name)) return Source::parse(read_file(name), preset_name(name));
  const std::string_view text = text_of(source_files(), name);
  if (text.empty()) fail_unknown({"", 0, "--as"}, "source", name, source_names());
  return Source::parse(text, name);
}

std::string_view source_rows(const std::string& name) { return text_of(source_row_files(), name); }

}  // namespace lambcast
