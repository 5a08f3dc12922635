#include "validate/program/metric_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/base/csv.h"
#include "sim/base/error.h"
#include "sim/base/file.h"

namespace lambcast {
namespace {

struct MetricColumn {
  std::string_view program, name;
  Quantity quantity;
  Counted counted = Counted::job;
};

constexpr MetricColumn metric_columns[] = {
    {"NeMo", "train_step_timing in s", Quantity::step_time_s},
    {"Lightning", "samples_per_sec", Quantity::samples_per_s, Counted::ranks},
    {"Lightning", "device/samples_per_sec", Quantity::samples_per_s, Counted::rank},
    {"NeMo", "tokens_per_sec_per_gpu", Quantity::tokens_per_gpu_s},
    {"Lightning", "device/items_per_sec", Quantity::tokens_per_gpu_s, Counted::ranks},
    {"Lightning", "batches_per_sec", Quantity::samples_per_s, Counted::ranks_batches},
    {"Lightning", "device/batches_per_sec", Quantity::samples_per_s, Counted::rank_batches},
};

constexpr std::size_t most_unpacked = std::size_t{256} << 20;

bool is_metrics_csv(std::string_view text) {
  const std::string header = fmt::format(",{},", text.substr(0, text.find_first_of("\r\n")));
  return header.find(",step,") != header.npos && header.find(",epoch,") != header.npos;
}

// Returns the name of a column with one kind of separator and without the trainer's stage prefix.
std::string plain_name(std::string name) {
  std::ranges::replace(name, '|', '/');
  return name.starts_with("train/") ? name.substr(6) : name;
}

LogRows rows_of_csv(std::string_view text, const std::string& file) {
  const csv::Table table = csv::parse(text, file);
  for (const MetricColumn& column : metric_columns) {
    const auto name = std::ranges::find(table.header, column.name, plain_name);
    if (name == table.header.end()) continue;
    LogRows of{std::string(column.program), column.quantity, {}, false, column.counted};
    for (std::size_t row = 0; row < table.rows.size(); ++row)
      if (!table.text(row, *name).empty())
        if (const double value = table.number(row, *name); value > 0)
          of.rows.push_back({value, 0, {}, table.lines[row]});
    if (!of.rows.empty()) return of;
  }
  std::string names;
  for (const MetricColumn& column : metric_columns)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", column.name);
  fail_input(
      {file, 1, {}}, "is metrics.csv without the time of a step",
      fmt::format("a column {}: Lightning's ThroughputMonitor, or NeMo's timing callback", names));
}

// Replaces numbers that Python writes and JSON does not allow.
std::string without_nan(std::string_view text) {
  std::string json(text);
  for (const std::string_view word : {": NaN", ": Infinity", ": -Infinity"})
    for (auto at = json.find(word); at != json.npos; at = json.find(word, at))
      json.replace(at, word.size(), ": null");
  return json;
}

double number_or_zero(const nlohmann::json& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_number() ? found->get<double>() : 0;
}

LogRows rows_of_state(std::string_view text, const std::string& file) {
  const auto state = nlohmann::json::parse(without_nan(text), nullptr, false);
  if (state.is_discarded())
    fail_input({file, 0, "log_history"}, "is a trainer_state.json that is truncated or no JSON",
               "the file of a checkpoint or of the end of the run");
  LogRows of{"Hugging Face Trainer", Quantity::samples_per_s, {}, true};
  for (const auto& record : state.value("log_history", nlohmann::json::array()))
    if (record.is_object() && record.contains("train_samples_per_second") &&
        record["train_samples_per_second"].is_number() && record["train_samples_per_second"] > 0)
      of.rows.push_back({record["train_samples_per_second"].get<double>(),
                         0,
                         {},
                         0,
                         number_or_zero(record, "train_steps_per_second"),
                         number_or_zero(record, "step")});
  if (of.rows.empty())
    fail_input({file, 0, "log_history"},
               "holds no train_samples_per_second: records of steps have no times",
               "trainer_state.json of the end of the run, or its log; else --measured "
               "step_time=...");
  return of;
}

}  // namespace

std::optional<LogRows> read_metric_file(std::string_view text, const std::string& file) {
  if (is_metrics_csv(text)) return rows_of_csv(text, file);
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin != text.npos && text[begin] == '{' && text.find("\"log_history\"") != text.npos)
    return rows_of_state(text, file);
  return std::nullopt;
}

std::string read_log_file(const std::string& path) {
  std::string packed = read_file(path);
  if (!packed.starts_with("\x1f\x8b")) return packed;
  z_stream stream{};
  // 16 selects the header of gzip.
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK)
    throw Error(Exit::failure, fmt::format("{}: zlib cannot start", path));
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string text;
  int status = Z_OK;
  // A file may contain several streams, one after another.
  while (status == Z_OK && text.size() < most_unpacked) {
    const std::size_t at = text.size(), step = std::size_t{1} << 20;
    text.resize(at + step);
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + at);
    stream.avail_out = static_cast<uInt>(step);
    status = inflate(&stream, Z_NO_FLUSH);
    text.resize(at + step - stream.avail_out);
    if (status == Z_STREAM_END && stream.avail_in > 0) status = inflateReset(&stream);
  }
  inflateEnd(&stream);
  if (text.size() >= most_unpacked)
    fail_input({path, 0, "--log"}, "is larger than 256 MiB unpacked", "the last steps of the log");
  if (status != Z_STREAM_END)
    fail_input({path, 0, "--log"}, "is a gzip file that is truncated or damaged",
               "the whole file, or the text of it: gzip -dc FILE > run.log");
  return text;
}

}  // namespace lambcast
