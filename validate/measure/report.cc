#include "validate/measure/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/base/json.h"
#include "sim/base/output_file.h"
#include "sim/base/printable.h"

namespace lambcast::validate {
namespace {

int ranks_of(const MeasuredTable& table) { return static_cast<int>(table.places.size()); }

bool has_blocks(Operation operation) {
  return operation == Operation::all_gather || operation == Operation::reduce_scatter ||
         operation == Operation::all_to_all;
}

std::uint64_t count_of(const MeasuredTable& table, const MeasuredRow& row) {
  const auto elements =
      static_cast<std::uint64_t>(row.out_of_place.row.size.value()) / bytes_of(table.options.type);
  return has_blocks(table.options.operation) ? elements / table.places.size() : elements;
}

const char* reduction(Operation operation) {
  const bool sums = operation == Operation::all_reduce || operation == Operation::reduce_scatter ||
                    operation == Operation::reduce;
  return sums ? "sum" : "none";
}

int root_of(const MeasuredTable& table) {
  const Operation operation = table.options.operation;
  const bool rooted = operation == Operation::broadcast || operation == Operation::reduce;
  return rooted ? table.options.root : -1;
}

std::uint64_t wrong_in(const MeasuredTable& table) {
  std::uint64_t wrong = 0;
  for (const MeasuredRow& row : table.rows) {
    wrong += row.out_of_place.wrong + (row.in_place ? row.in_place->wrong : 0);
  }
  return wrong;
}

// Returns the average busbw as nccl-tests computes it: over all sizes, and over the out-of-place
// and in-place halves if there are both.
double average_busbw_GBps(const MeasuredTable& table, const Measurement& measurement) {
  double sum = 0;
  int halves = 0;
  for (const MeasuredRow& row : table.rows) {
    sum += busbw_GBps(measurement, row.out_of_place.row);
    if (row.in_place) sum += busbw_GBps(measurement, row.in_place->row);
    halves += row.in_place ? 2 : 1;
  }
  return halves > 0 ? sum / halves : 0;
}

std::string rank_time_words(RankTime rank_time) {
  switch (rank_time) {
    case RankTime::rank0:
      return "rank 0";
    case RankTime::mean:
      return "mean over ranks";
    case RankTime::min:
      return "fastest rank";
    case RankTime::max:
      return "slowest rank";
  }
  return {};
}

std::string statistic_words(const MeasuredTable& table) {
  const char* over = table.options.statistic == Statistic::mean ? "mean" : "median";
  return fmt::format("{}; {}; {} over iterations", table.timing,
                     rank_time_words(table.options.rank_time), over);
}

// Returns the settings that nccl-tests prints above its table, as flags.
std::string options_words(const MeasureOptions& o) {
  const std::string next =
      o.step_bytes > 0 ? fmt::format("-i {}", o.step_bytes) : fmt::format("-f {:g}", o.factor);
  return fmt::format(
      "-d {} -b {} -e {} {} -n {} -w {} -c {} -N {} -m {} -G {} -z {} -a {} -r {}{}",
      name_of(o.type), o.min_bytes, o.max_bytes, next, o.iterations, o.warmup, o.check_iterations,
      o.cycles, o.aggregated, o.graph_launches, int{o.blocking}, static_cast<int>(o.rank_time),
      o.root,
      o.seconds_per_size > 0 ? fmt::format(" --seconds-per-size {:g}", o.seconds_per_size) : "");
}

// Formats a bandwidth as wide as in nccl-tests, with more digits for a slow link.
std::string rate(double GBps) {
  return GBps < 1 ? fmt::format("{:6.4f}", GBps) : fmt::format("{:6.2f}", GBps);
}

std::optional<std::string> staging_words(const MeasuredTable& table) {
  if (table.options.staging == Staging::none) return {};
  return "memcpy in place of copies between device and host";
}

// Returns notes on a table measured with a shared GPU, as keys and sentences.
std::vector<std::pair<std::string, std::string>> sharing_notes(const MeasuredTable& table) {
  if (table.sharing.how.empty()) return {};
  return {{"sharing", table.sharing.how},
          {"fit for", table.sharing.fit_for},
          {"not fit for", table.sharing.unfit_for}};
}

// Returns a name without spaces, since the table is parsed word by word.
std::string one_word(std::string_view name) {
  std::string word = printable(name);
  std::replace(word.begin(), word.end(), ' ', '_');
  return word;
}

void write_text_head(const MeasuredTable& table, std::ostream& out) {
  const MeasureOptions& o = table.options;
  out << fmt::format("# lambcast measure, backend {}, {}\n", traits_of(table.backend).word,
                     table.library);
  out << fmt::format("# Collective test starting: {}\n", name_of(o.operation));
  out << fmt::format(
      "# nThread 1 nGpus 1 minBytes {} maxBytes {} step: {} warmup iters: {} "
      "iters: {} agg iters: {} validation: {} graph: {}\n",
      o.min_bytes, o.max_bytes,
      o.step_bytes > 0 ? fmt::format("{}(bytes)", o.step_bytes)
                       : fmt::format("{}(factor)", o.factor),
      o.warmup, o.iterations, o.aggregated, o.check_iterations, o.graph_launches);
  if (o.blocking)
    out << "# Blocking Enabled: wait for completion and barrier after each collective\n";
  out << fmt::format("# timing: {}\n", statistic_words(table));
  if (const auto words = staging_words(table)) out << fmt::format("# staging: {}\n", *words);
  for (const auto& [key, words] : sharing_notes(table))
    out << fmt::format("# {}: {}\n", key, words);
  out << "#\n# Using devices\n";
  for (std::size_t rank = 0; rank < table.places.size(); ++rank) {
    const RankPlace& place = table.places[rank];
    const std::string device =
        place.device < 0 ? "host" : fmt::format("{:2} {}", place.device, place.device_name);
    out << fmt::format("#  Rank {:2} Group  0 on {:>10} device {}\n", rank, one_word(place.host),
                       printable(device));
  }
  const auto line = [&out](auto... words) {
    out << fmt::format(
        "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>9}  {:>6}  {:>6}  {:>6}  {:>9}  {:>6}  "
        "{:>6}  {:>6}\n",
        words...);
  };
  out << fmt::format("#\n#{:66}out-of-place{:24}in-place\n", "", "");
  line("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time",
       "algbw", "busbw", "#wrong");
  line("(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)",
       "");
}

std::string half_text(const Measurement& measurement, const std::optional<MeasuredHalf>& half) {
  const auto columns = [](const std::string& time, const std::string& algbw,
                          const std::string& busbw, const std::string& wrong) {
    return fmt::format("  {:>9}  {:>6}  {:>6}  {:>6}", time, algbw, busbw, wrong);
  };
  if (!half) return columns("N/A", "N/A", "N/A", "N/A");
  return columns(fmt::format("{:.2f}", half->row.time.us()), rate(algbw_GBps(half->row)),
                 rate(busbw_GBps(measurement, half->row)),
                 half->checked ? fmt::format("{}", half->wrong) : "N/A");
}

void write_text_row(const MeasuredTable& table, const Measurement& measurement,
                    const MeasuredRow& row, std::ostream& out) {
  out << fmt::format(
      "{:>12}  {:>12}  {:>8}  {:>6}  {:>6}{}{}\n",
      static_cast<std::uint64_t>(row.out_of_place.row.size.value()), count_of(table, row),
      name_of(table.options.type), reduction(table.options.operation), root_of(table),
      half_text(measurement, row.out_of_place), half_text(measurement, row.in_place));
}

void write_text_tail(const MeasuredTable& table, const Measurement& measurement,
                     std::ostream& out) {
  const std::uint64_t wrong = wrong_in(table);
  out << fmt::format("# Out of bounds values : {} {}\n# Avg bus bandwidth    : {:g}\n#\n", wrong,
                     wrong == 0 ? "OK" : "FAILED", average_busbw_GBps(table, measurement));
}

void write_csv_head(const MeasuredTable& table, const Measurement& measurement, std::ostream& out) {
  const bool in_place = has_in_place(table.options.operation, table.backend);
  out << fmt::format("{}{},wrong{}\n", measurement_csv_comments(measurement),
                     measurement_csv_columns(table.has_spread),
                     !in_place ? ""
                     : table.has_spread
                         ? ",in_place_us,in_place_min_us,in_place_max_us,in_place_wrong"
                         : ",in_place_us,in_place_wrong");
}

void write_csv_row(const MeasuredTable& table, const Measurement& measurement,
                   const MeasuredRow& row, std::ostream& out) {
  const auto wrong = [](const MeasuredHalf& half) {
    return half.checked ? fmt::format("{}", half.wrong) : "";
  };
  out << fmt::format("{},{}",
                     measurement_csv_row(measurement, row.out_of_place.row, table.has_spread),
                     wrong(row.out_of_place));
  if (row.in_place)
    out << fmt::format(",{},{}", measurement_csv_times(row.in_place->row, table.has_spread),
                       wrong(*row.in_place));
  out << "\n";
}

void add_half(Json& json, const std::string& key, const Measurement& measurement,
              const MeasuredHalf& half) {
  json[key] = {{"time", half.row.time.us()},
               {"alg_bw", algbw_GBps(half.row)},
               {"bus_bw", busbw_GBps(measurement, half.row)},
               {"nwrong", nullptr}};
  if (half.checked) json[key]["nwrong"] = half.wrong;
  if (half.row.spread) {
    json[key + "_per_iter"] = {{"min_us", half.row.spread->low.us()},
                               {"max_us", half.row.spread->high.us()}};
  }
}

// Writes the JSON object without its end; the rows and the tail follow.
void write_json_head(const MeasuredTable& table, std::ostream& out) {
  Json json{{"schema_version", 1},
            {"tool", "lambcast measure"},
            {"collective", name_of(table.options.operation)},
            {"backend", traits_of(table.backend).word},
            {"library", table.library},
            {"timing", statistic_words(table)},
            {"options", options_words(table.options)}};
  json["config"] = {{"warmup_iters", table.options.warmup},
                    {"aggregated_iterations", table.options.aggregated},
                    {"graph", table.options.graph_launches},
                    {"blocking_collectives", table.options.blocking ? "true" : "false"}};
  if (const auto words = staging_words(table)) json["staging"] = *words;
  for (const auto& [key, words] : sharing_notes(table)) json[key] = words;
  for (std::size_t rank = 0; rank < table.places.size(); ++rank) {
    const RankPlace& place = table.places[rank];
    json["config"]["devices"].push_back({{"rank", rank},
                                         {"hostname", printable(place.host)},
                                         {"device", place.device},
                                         {"device_info", printable(place.device_name)}});
  }
  std::string text = json_lines(json);
  text.resize(text.rfind("\n}"));
  out << fmt::format("{},\n  \"results\": [", text);
}

void write_json_row(const MeasuredTable& table, const Measurement& measurement,
                    const MeasuredRow& row, std::ostream& out) {
  Json json{{"size", static_cast<std::uint64_t>(row.out_of_place.row.size.value())},
            {"count", count_of(table, row)},
            {"type", name_of(table.options.type)},
            {"redop", reduction(table.options.operation)},
            {"root", fmt::format("{}", root_of(table))}};
  add_half(json, "out_of_place", measurement, row.out_of_place);
  json["in_place"] = nullptr;
  if (row.in_place) add_half(json, "in_place", measurement, *row.in_place);
  json["actual_iterations"] = row.out_of_place.iterations;
  out << fmt::format("{}\n    {}", table.rows.size() > 1 ? "," : "", json_line(json));
}

void write_json_tail(const MeasuredTable& table, const Measurement& measurement,
                     std::ostream& out) {
  const std::uint64_t wrong = wrong_in(table);
  const Json json{{"out_of_bounds", {{"count", wrong}, {"okay", wrong == 0 ? "true" : "false"}}},
                  {"average_bus_bandwidth",
                   {{"bandwidth", average_busbw_GBps(table, measurement)}, {"okay", "unchecked"}}}};
  out << fmt::format("\n  ],{}", json_lines(json).substr(1));
}

}  // namespace

Measurement to_measurement(const MeasuredTable& table) {
  Measurement measurement;
  measurement.operation = table.options.operation;
  measurement.ranks = ranks_of(table);
  std::set<std::string> hosts;
  for (const RankPlace& place : table.places) hosts.insert(place.host);
  const int nodes = static_cast<int>(hosts.size());
  measurement.nodes = nodes;
  if (measurement.ranks % nodes == 0) measurement.gpus_per_node = measurement.ranks / nodes;
  measurement.provenance = {
      Kind::measured, fmt::format("lambcast measure, backend {}, {}", traits_of(table.backend).word,
                                  table.library)};
  if (!table.options.algorithm.empty()) measurement.algorithm = table.options.algorithm;
  measurement.backend = table.backend;
  measurement.staging = staging_words(table);
  auto& notes = measurement.notes;
  notes.emplace_back("date", utc_now());
  notes.emplace_back("kernel", kernel_name());
  if (const RankPlace& place = table.places.front(); place.device >= 0)
    notes.emplace_back("gpu", printable(place.device_name));
  notes.emplace_back("hosts", printable(fmt::format("{}", fmt::join(hosts, " "))));
  if (!table.options.network.empty()) notes.emplace_back("network", table.options.network);
  notes.emplace_back("timing", statistic_words(table));
  notes.emplace_back("options", options_words(table.options));
  for (auto& note : sharing_notes(table)) notes.push_back(std::move(note));
  std::string settings;
  for (const std::string& entry : allowed_environment()) {
    settings += (settings.empty() ? "" : " ") + entry;
  }
  if (!settings.empty()) notes.emplace_back("settings", settings);
  for (const MeasuredRow& row : table.rows) measurement.rows.push_back(row.out_of_place.row);
  return measurement;
}

Report::Report(MeasuredTable table, std::ostream* out, std::size_t sizes)
    : table_(std::move(table)), measurement_(to_measurement(table_)), out_(out), sizes_(sizes) {
  if (out_ == nullptr) return;
  if (const std::string& file = table_.options.manifest; !file.empty())
    write_output(file, "--manifest", manifest_json(table_));
  if (table_.options.format == ReportFormat::nccl_tests) write_text_head(table_, *out_);
  if (table_.options.format == ReportFormat::csv) write_csv_head(table_, measurement_, *out_);
  if (table_.options.format == ReportFormat::json) write_json_head(table_, *out_);
  flush();
}

void Report::add(const MeasuredRow& row) {
  table_.rows.push_back(row);
  if (out_ == nullptr) return;
  const ReportFormat format = table_.options.format;
  if (format == ReportFormat::nccl_tests) write_text_row(table_, measurement_, row, *out_);
  if (format == ReportFormat::csv) write_csv_row(table_, measurement_, row, *out_);
  if (format == ReportFormat::json) write_json_row(table_, measurement_, row, *out_);
  flush();
}

int Report::finish() {
  if (out_ != nullptr) {
    const ReportFormat format = table_.options.format;
    if (format == ReportFormat::nccl_tests) write_text_tail(table_, measurement_, *out_);
    if (format == ReportFormat::json) write_json_tail(table_, measurement_, *out_);
    flush();
  }
  return wrong_in(table_) == 0 ? 0 : 1;
}

void Report::flush() {
  if (!out_->flush()) throw Error(Exit::failure, "the table cannot be written to stdout");
  show_progress();
}

void Report::show_progress() const {
  // Prints no progress if stderr is no terminal, or if the rows are shown on one.
  if (isatty(STDERR_FILENO) == 0 || isatty(STDOUT_FILENO) != 0) return;
  const std::size_t done = table_.rows.size();
  fmt::print(stderr, "\r{} of {} sizes{}", done, sizes_, done == sizes_ ? "\n" : "");
}

}  // namespace lambcast::validate
