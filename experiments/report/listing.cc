#include "experiments/report/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "experiments/verdict/verdict.h"
#include "models/optimizer/passes.h"
#include "models/training/run/step_parts.h"

namespace lambcast::report {
namespace {

using Kind = Column::Kind;

struct Heading {
  std::string_view label, title;
  Kind kind;
  double unit = 0;
  bool thins = false;
};

constexpr Heading headings[] = {
    {"model", "model", Kind::key},
    {"cluster", "cluster", Kind::key},
    {"optimizer", "optimizer", Kind::key},
    {"backend", "backend", Kind::key},
    {"GPUs", "gpus", Kind::key, 0, true},
    {"nodes", "nodes", Kind::key},
    {"micro batch", "micro_batch", Kind::key, 0, true},
    {"accumulation", "grad_accum", Kind::key, 0, true},
    {"global batch", "global_batch", Kind::key, 0, true},
    {"steps", "steps", Kind::key, 0, true},
    {"freeze_step", "freeze_step", Kind::key, 0, true},
    {"NIC (Gbit/s)", "nic_bandwidth_Gbps", Kind::key, 0, true},
    {"CUDA-aware", "cuda_aware", Kind::key},
    {"sequence", "seq_len", Kind::key, 0, true},
    {"device", "device", Kind::key},
    {"GPUs per node", "gpus_per_node", Kind::key},
    {"kernels", "kernels", Kind::key},
    {"precision", "precision", Kind::key},
    {"ZeRO stage", "zero_stage", Kind::key},
    {"overlap", "overlap", Kind::key},
    {"network", "network", Kind::key},
    {"symmetry", "symmetry", Kind::key},
    {"speed-up", "speedup_vs_baseline", Kind::figure, 1},
    {"speed-up, fused kernels", "fused_speedup", Kind::figure, 1},
    {"samples/s", "run_samples_per_s", Kind::figure, 1},
    {"tokens/s", "run_tokens_per_s", Kind::figure, 1},
    {"TFLOP/s per GPU", "tflops_per_gpu", Kind::figure, 1},
    {"MFU", "mfu", Kind::figure, 1},
    {"run (h)", "run_time_s", Kind::figure, 3600},
    {"cost (USD)", "cost_usd", Kind::figure, 1},
    {"GPU hours", "gpu_hours", Kind::figure, 1},
    {"step (ms)", "uniform_step_time_us", Kind::figure, 1e3},
    {"warm-up step (ms)", "warmup_step_time_us", Kind::figure, 1e3},
    {"compressed step (ms)", "compression_step_time_us", Kind::figure, 1e3},
    {"silent step (ms)", "silent_step_time_us", Kind::figure, 1e3},
    {"refresh step (ms)", "refresh_step_time_us", Kind::figure, 1e3},
    {"GB sent per GPU", "run_wire_bytes_per_gpu", Kind::figure, 1e9},
    {"peak GiB per GPU", "peak_bytes_per_gpu", Kind::figure, 1073741824.0},
    {"compared with", "baseline_optimizer", Kind::fact},
    {"compression pays", "verdict", Kind::fact},
    {"findings", "findings", Kind::fact},
    {"costs are", "cost_source", Kind::fact},
    {"compute rests on", "compute_basis", Kind::fact},
    {"communication calibrated", "communication_calibrated", Kind::fact},
    {"status", "status", Kind::fact}};

// A column that only the page's script uses. `details` exist for each kind of step.
struct Detail {
  std::string_view title;
  double unit;
};
constexpr Detail details[] = {
    {"steps", 1}, {"step_time_low_us", 1e3}, {"step_time_high_us", 1e3}, {"step_time_coverage", 1}};

// Columns of the interval ends of a whole run.
constexpr Detail run_ends[] = {{"run_time_low_s", 3600}, {"run_time_high_s", 3600},
                               {"cost_low_usd", 1},      {"cost_high_usd", 1},
                               {"speedup_low", 1},       {"speedup_high", 1},
                               {"fused_speedup_low", 1}, {"fused_speedup_high", 1}};

constexpr const char* warmup_label = "warm-up (% of steps)";

// Returns the share of warm-up steps in percent; freeze_step counts from 1. It is rounded to 0.1 %,
// since runs of different length with a share of 5 % agree only to that.
std::string warmup_percent(std::string_view freeze, std::string_view steps) {
  if (freeze.empty()) return {};
  double first = 0, all = 0;
  const char* const rest = std::from_chars(freeze.data(), freeze.data() + freeze.size(), first).ptr;
  std::from_chars(steps.data(), steps.data() + steps.size(), all);
  const std::string_view unit(rest, freeze.data() + freeze.size());
  const bool is_share = unit == "%";  // the setting of a point that cannot run
  if (!is_share && (!unit.empty() || !(all > 0))) return {};
  const double percent = std::clamp(is_share ? first : 100 * (first - 1) / all, 0.0, 100.0);
  return percent < 1 ? fmt::format("{:.2g}", percent)
                     : fmt::format("{:g}", std::round(10 * percent) / 10);
}

}  // namespace

Listing::Listing(const csv::Reader& file)
    : settings_(file.find("settings")),
      freeze_(file.find("freeze_step")),
      steps_(file.find("steps")) {
  for (const Heading& h : headings) {
    if (const auto index = file.find(h.title))
      add_column(
          {std::string(h.title), std::string(h.label), h.kind, h.unit},
          {h.title == "verdict" ? Source::From::verdict : Source::From::file, *index, h.thins});
    if (h.title == "freeze_step" && freeze_ && steps_)
      add_column({"warmup_percent", warmup_label, Kind::key, 0}, {Source::From::warmup});
  }
  for (const StepKind kind : step_kinds) {
    const auto add = [&](std::string_view detail, double unit) {
      const std::string title = fmt::format("{}_{}", name_of(kind), detail);
      if (const auto index = file.find(title))
        add_column({title, title, Kind::detail, unit}, {Source::From::file, *index});
    };
    for (const Detail& detail : details) add(detail.title, detail.unit);
    for (const std::string_view part : step_parts) add(fmt::format("{}_us", part), 1e3);
  }
  for (const Detail& detail : run_ends)
    if (const auto index = file.find(detail.title))
      add_column({std::string(detail.title), std::string(detail.title), Kind::detail, detail.unit},
                 {Source::From::file, *index});
  fixed_ = columns_.size();
}

void Listing::add_column(Column column, Source source) {
  if (column.is_text() && source.from != Source::From::setting) named_.push_back(columns_.size());
  columns_.push_back(std::move(column));
  sources_.push_back(source);
}

std::size_t Listing::setting_column(std::string_view key) {
  for (const std::size_t column : setting_columns_)
    if (columns_[column].title() == key) return column;
  const bool full = setting_columns_.size() >= most_settings;
  if (full && columns_[setting_columns_.back()].title() == "settings")
    return setting_columns_.back();
  const std::string title(full ? "settings" : key);
  setting_columns_.push_back(columns_.size());
  add_column({title, full ? "another setting" : title, Kind::key, 0},
             {Source::From::setting, 0, true});
  Column& column = columns_.back();
  const std::uint32_t none = column.place_of("");
  for (std::size_t row = 0; row < kept_.size(); ++row) column.add(none);
  sources_.back().place = none;
  return setting_columns_.back();
}

// Reads settings such as "cluster.node.gpu_link=25GB/s; tp=8". The bandwidth of the NIC has its own
// column.
void Listing::read_settings(std::string_view settings) {
  if (settings == said_settings_) return;
  said_settings_ = settings;
  for (const std::size_t column : setting_columns_)
    sources_[column].place = columns_[column].place_of("");
  for (std::size_t begin = 0; begin < settings.size();) {
    const std::size_t end = std::min(settings.find("; ", begin), settings.size());
    const std::string_view setting = settings.substr(begin, end - begin);
    const std::size_t equals = std::min(setting.find('='), setting.size());
    // A cluster from a file has its name in the column `cluster` and its file in `settings`.
    const std::string_view name = setting.substr(0, equals);
    const bool has_column =
        std::any_of(columns_.begin(), columns_.begin() + static_cast<std::ptrdiff_t>(fixed_),
                    [&](const Column& column) { return column.title() == name; });
    const std::string key = fmt::format("{}{}", name, has_column ? " file" : "");
    const std::string_view value = setting.substr(std::min(equals + 1, setting.size()));
    begin = end + 2;
    if (key == "cluster.nic.bandwidth") continue;
    const std::size_t column = setting_column(key);
    sources_[column].place =
        columns_[column].place_of(columns_[column].title() == key ? value : setting);
  }
}

// Returns the index of the share of warm-up. Consecutive rows mostly have the same share, which is
// then not computed again.
std::uint32_t Listing::warmup_place(Column& column, std::string_view freeze,
                                    std::string_view steps) {
  if (rows_ == 0 || freeze != said_freeze_ || steps != said_steps_) {
    said_freeze_ = freeze;
    said_steps_ = steps;
    warmup_place_ = column.place_of(warmup_percent(freeze, steps));
  }
  return warmup_place_;
}

bool Listing::is_kept(std::size_t row) const {
  return row % row_stride_ == 0 && std::ranges::all_of(thinned_, [&](std::size_t column) {
           return sources_[column].place % sources_[column].stride == 0;
         });
}

std::size_t Listing::row_bytes() const {
  std::size_t bytes = 0;
  for (const Column& column : columns_) bytes += column.cell_bytes();
  return bytes;
}

bool Listing::add(const csv::Reader& file) {
  if (settings_) read_settings(file.text(*settings_));
  for (const std::size_t i : named_) {
    Source& source = sources_[i];
    if (source.from == Source::From::file)
      source.place = columns_[i].place_of(file.text(source.index));
    else if (source.from == Source::From::verdict)
      source.place = columns_[i].place_of(words_of_code(file.text(source.index)));
    else
      source.place = warmup_place(columns_[i], file.text(*freeze_), file.text(*steps_));
  }
  const std::size_t row = rows_++;
  if (!is_kept(row)) return false;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].is_text())
      columns_[i].add(sources_[i].place);
    else
      columns_[i].add(file.text(sources_[i].index));
  }
  kept_.push_back(static_cast<std::uint32_t>(row));
  while (kept_.size() > most_rows || kept_.size() * row_bytes() > most_cell_bytes) thin();
  return !kept_.empty() && kept_.back() == row;
}

// Halves the kept values of the key that has the most. Keys with fewer than eight values are kept,
// since four values still make a line.
void Listing::thin() {
  std::size_t widest = columns_.size(), most = 7;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::size_t values = columns_[i].names() / sources_[i].stride;
    if (!sources_[i].thins || values <= most) continue;
    widest = i;
    most = values;
  }
  std::vector<bool> wanted(kept_.size());
  if (widest < columns_.size()) {
    if (sources_[widest].stride == 1) thinned_.push_back(widest);
    const std::uint32_t stride = sources_[widest].stride *= 2;
    for (std::size_t row = 0; row < kept_.size(); ++row)
      wanted[row] = columns_[widest].place(row) % stride == 0;
  } else {
    row_stride_ *= 2;
    for (std::size_t row = 0; row < kept_.size(); ++row)
      wanted[row] = kept_[row] % row_stride_ == 0;
  }
  for (Column& column : columns_) column.keep_only(wanted);
  std::size_t kept = 0;
  for (std::size_t row = 0; row < wanted.size(); ++row)
    if (wanted[row]) kept_[kept++] = kept_[row];
  kept_.resize(kept);
}

std::string Listing::thinning() const {
  std::vector<std::string> said;
  for (std::size_t i = 0; i < columns_.size(); ++i)
    if (sources_[i].stride > 1)
      said.push_back(
          fmt::format("one in {} values of {}", sources_[i].stride, columns_[i].label()));
  if (row_stride_ > 1) said.push_back(fmt::format("one row in {}", row_stride_));
  return fmt::format("{}", fmt::join(said, ", "));
}

void Listing::append_json(std::string& out) const {
  out += fmt::format("\"rows\":{},\"columns\":[", kept_.size());
  const std::size_t begin = out.size();
  for (const Column& column : columns_) {
    if (column.empty()) continue;
    if (out.size() > begin) out += ",\n";
    column.append_json(out);
  }
  out += ']';
}

}  // namespace lambcast::report
