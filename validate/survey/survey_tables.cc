#include "validate/survey/survey_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/base/csv_reader.h"
#include "sim/base/file.h"
#include "validate/importers/importers.h"
#include "validate/replay/collective_replay.h"

namespace lambcast {
namespace {

namespace fs = std::filesystem;
using validate::Measurement;

// A planned row has no measured time. The replay divides by it, so it is set to 1 s.
const Duration no_time = Duration::seconds(1);

int whole(const csv::Reader& reader, std::size_t column) {
  const std::string_view text = reader.text(column);
  int value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || value < 1)
    fail_input({reader.name(), reader.line(), reader.header()[column]},
               fmt::format("'{}' is not a whole number of at least 1", text));
  return value;
}

std::vector<CollectiveResult> replayed(const std::string& cluster,
                                       const std::vector<Measurement>& tables) {
  std::vector<CollectiveCase> cases;
  for (const Measurement& table : tables) {
    const std::string name = fmt::format("{} over {} ranks", name_of(table.operation), table.ranks);
    cases.push_back({name, cluster, false, table, table.backend});
  }
  return replay_collectives(cases, {}).results;
}

// Returns whether a table has a row. A table that was begun when the launch ended may have only its
// header.
bool has_row(std::string_view text) {
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && c >= '0' && c <= '9') return true;
    line_begins = c == '\n';
  }
  return false;
}

std::vector<double> errors_of(const CollectiveResult& result) {
  std::vector<double> errors;
  for (std::size_t row = 0; row < result.forecast.size(); ++row)
    errors.push_back(std::abs(error_of(result, row)));
  return errors;
}

// Returns whether the elements of a table are float, by its settings. Old tables, which state no
// type, are float.
bool is_of_float(const Measurement& table) {
  return std::ranges::none_of(table.notes, [](const auto& note) {
    return note.first == "options" && !note.second.starts_with("-d float ");
  });
}

double median_error(const std::vector<CollectiveResult>& results) {
  std::vector<double> all;
  for (const CollectiveResult& result : results) {
    const std::vector<double> errors = errors_of(result);
    all.insert(all.end(), errors.begin(), errors.end());
  }
  return validate::quantile(all, 0.5);
}

}  // namespace

std::vector<Measurement> planned_tables(const fs::path& plan, Backend backend) {
  csv::Reader reader = csv::Reader::of_file(plan);
  const std::size_t table = reader.column("table"), operation = reader.column("operation"),
                    nodes = reader.column("nodes"), ranks = reader.column("ranks"),
                    size = reader.column("size_bytes");
  std::vector<Measurement> tables;
  std::string last;
  while (reader.next()) {
    if (reader.text(table) != last) {
      last = reader.text(table);
      Measurement planned;
      planned.backend = backend;
      planned.operation = validate::parse_operation(reader.text(operation),
                                                    {reader.name(), reader.line(), "operation"});
      planned.ranks = whole(reader, ranks);
      planned.nodes = whole(reader, nodes);
      tables.push_back(planned);
    }
    tables.back().rows.push_back({Bytes(whole(reader, size)), no_time, {}});
  }
  return tables;
}

std::vector<Measurement> surveyed_tables(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / "tables"))
    files.push_back(entry.path());
  std::ranges::sort(files);
  validate::ImportHints hints;
  hints.in_place = true;
  std::vector<Measurement> tables;
  for (const fs::path& file : files) {
    const std::string text = read_file(file.string());
    if (!has_row(text)) continue;
    for (Measurement& table : validate::import_measurements(text, file.string(), hints))
      tables.push_back(std::move(table));
  }
  return tables;
}

std::string survey_forecast_csv(const std::string& cluster,
                                const std::vector<Measurement>& planned) {
  std::string csv = "operation,nodes,ranks,size_bytes,time_us,time_low_us,time_high_us\n";
  for (const CollectiveResult& result : replayed(cluster, planned)) {
    const Measurement& table = result.of.measured;
    for (std::size_t row = 0; row < result.forecast.size(); ++row)
      csv += fmt::format("{},{},{},{:.0f},{:.3f},{:.3f},{:.3f}\n", name_of(table.operation),
                         table.nodes.value_or(0), table.ranks, table.rows[row].size.value(),
                         result.forecast[row].us(), result.interval[row].low.us(),
                         result.interval[row].high.us());
  }
  return csv;
}

std::vector<Measurement> forecast_tables(std::vector<Measurement> tables) {
  std::erase_if(tables, [](const Measurement& table) {
    return table.operation == validate::Operation::compressed_allreduce &&
           table.backend == Backend::nccl;
  });
  return tables;
}

std::string exchanges_side_by_side(const std::vector<Measurement>& tables) {
  using validate::Operation, validate::Row;
  std::string text;
  for (const Measurement& coded : tables)
    for (const Measurement& plain : tables) {
      if (coded.operation != Operation::compressed_allreduce || coded.ranks != plain.ranks ||
          plain.operation != Operation::all_reduce || !is_of_float(plain))
        continue;
      for (auto row = coded.rows.rbegin(); row != coded.rows.rend(); ++row) {
        const auto same = std::ranges::find(plain.rows, row->size, &Row::size);
        if (same == plain.rows.end()) continue;
        text += fmt::format(
            "compressed_allreduce of {:.0f} bytes over {} ranks is {:.2f}x as fast as all_reduce\n",
            row->size.value(), plain.ranks, same->time.s() / row->time.s());
        break;
      }
    }
  return text;
}

SurveyRows hold_out_sizes(const std::vector<Measurement>& tables) {
  SurveyRows rows;
  for (const Measurement& table : tables) {
    Measurement fitted = table, held_out = table;
    fitted.rows.clear();
    held_out.rows.clear();
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      const bool held = row % 3 == 1 && table.rows.size() >= 3;
      (held ? held_out : fitted).rows.push_back(table.rows[row]);
    }
    rows.fitted.push_back(std::move(fitted));
    if (!held_out.rows.empty()) rows.held_out.push_back(std::move(held_out));
  }
  return rows;
}

SurveyComparison survey_comparison(const std::string& before, const std::string& after,
                                   const std::vector<Measurement>& measured) {
  const std::vector<CollectiveResult> known = replayed(before, measured),
                                      fitted = replayed(after, measured);
  SurveyComparison comparison{median_error(known), median_error(fitted), {}, {}};
  comparison.table = fmt::format("{:20} {:>6} {:>6} {:>5} {:>15} {:>15}\n", "operation", "nodes",
                                 "ranks", "rows", "error before", "error after");
  comparison.csv =
      "operation,nodes,ranks,size_bytes,measured_us,before_us,after_us,after_low_us,"
      "after_high_us\n";
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const Measurement& table = measured[i];
    const int nodes = table.nodes.value_or(0);
    comparison.table += fmt::format("{:20} {:>6} {:>6} {:>5} {:>14.1f}% {:>14.1f}%\n",
                                    name_of(table.operation), nodes, table.ranks, table.rows.size(),
                                    100 * validate::quantile(errors_of(known[i]), 0.5),
                                    100 * validate::quantile(errors_of(fitted[i]), 0.5));
    for (std::size_t row = 0; row < table.rows.size(); ++row)
      comparison.csv += fmt::format(
          "{},{},{},{:.0f},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f}\n", name_of(table.operation), nodes,
          table.ranks, table.rows[row].size.value(), table.rows[row].time.us(),
          known[i].forecast[row].us(), fitted[i].forecast[row].us(),
          fitted[i].interval[row].low.us(), fitted[i].interval[row].high.us());
  }
  return comparison;
}

}  // namespace lambcast
