#include "experiments/report/page.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "experiments/report/html.h"
#include "experiments/report/verdict.h"
#include "sim/base/error.h"

namespace lambcast::report {
namespace {

using Json = nlohmann::ordered_json;

// A column of the table on the page: results.csv in units for people.
struct Column {
  std::string_view heading, title;
  double unit;        // what the number is divided by; 0 for text
  bool axis = false;  // shown only where its rows differ
};

constexpr Column columns[] = {{"model", "model", 0},
                              {"cluster", "cluster", 0},
                              {"optimizer", "optimizer", 0},
                              {"backend", "backend", 0},
                              {"GPUs", "gpus", 1},
                              {"micro batch", "micro_batch", 1},
                              {"accum.", "grad_accum", 1},
                              {"global batch", "global_batch", 1},
                              {"freeze_step", "freeze_step", 1},
                              {"NIC (Gbit/s)", "nic_bandwidth_Gbps", 1},
                              {"device", "device", 0, true},
                              {"GPUs per node", "gpus_per_node", 1, true},
                              {"kernels", "kernels", 0, true},
                              {"precision", "precision", 0, true},
                              {"ZeRO stage", "zero_stage", 0, true},
                              {"overlap", "overlap", 0, true},
                              {"network", "network", 0, true},
                              {"symmetry", "symmetry", 0, true},
                              {"settings", "settings", 0, true},
                              {"uniform step (ms)", "uniform_step_time_us", 1e3},
                              {"warm-up step (ms)", "warmup_step_time_us", 1e3},
                              {"compressed step (ms)", "compression_step_time_us", 1e3},
                              {"silent step (ms)", "silent_step_time_us", 1e3},
                              {"run (h)", "run_time_s", 3600},
                              {"samples/s", "run_samples_per_s", 1},
                              {"speed-up", "speedup_vs_baseline", 1},
                              {"GB sent per GPU", "run_wire_bytes_per_gpu", 1e9},
                              {"peak GiB per GPU", "peak_bytes_per_gpu", 1073741824.0},
                              {"cost (USD)", "cost_usd", 1},
                              {"status", "status", 0},
                              {"costs are", "cost_source", 0}};

// Shown columns: those of the file in which some row says something (else).
std::vector<Column> shown_columns(const csv::Table& table, std::size_t rows) {
  std::vector<Column> shown;
  for (const Column& column : columns) {
    bool filled = false;
    for (std::size_t row = 0; table.has(column.title) && row < rows && !filled; ++row) {
      const std::string& text = table.text(row, column.title);
      filled = column.axis ? text != table.text(0, column.title) : !text.empty();
    }
    if (filled) shown.push_back(column);
  }
  return shown;
}

std::string cell(const csv::Table& table, std::size_t row, const Column& column) {
  const std::string& text = table.text(row, column.title);
  if (column.unit == 0) return fmt::format("<td>{}", escaped(text));
  if (text.empty()) return "<td class=n>";
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  // What was asked of a point that cannot run may be no number: a freeze_step of "10%".
  if (status != std::errc{} || end != text.data() + text.size())
    return fmt::format("<td>{}", escaped(text));
  value /= column.unit;
  const bool whole = value == std::floor(value) || std::abs(value) >= 1e3;
  return whole ? fmt::format("<td class=n>{:.0f}", value)
               : fmt::format("<td class=n>{:.4g}", value);
}

std::string rows_section(const csv::Table& table) {
  const std::size_t rows = std::min(table.rows.size(), most_rows);
  std::string text = "<section class=rows><h2>Rows</h2>\n<p>";
  if (rows < table.rows.size()) {
    text += fmt::format("The first {} of {} rows. ", rows, table.rows.size());
  }
  text +=
      "results.csv beside this page has every row and column, with full precision.</p>\n"
      "<div class=scroll><table class=listing><thead><tr>";
  const std::vector<Column> shown = shown_columns(table, rows);
  for (const Column& column : shown) text += fmt::format("<th>{}", column.heading);
  text += "</thead><tbody>\n";
  for (std::size_t row = 0; row < rows; ++row) {
    text += table.text(row, "status") == "ok" ? "<tr>" : "<tr class=bad>";
    for (const Column& column : shown) text += cell(table, row, column);
    text += '\n';
  }
  return text + "</tbody></table></div></section>\n";
}

std::string json_html(const Json& value) {
  if (value.is_string()) return escaped(value.get<std::string>());
  if (!value.is_structured()) return escaped(value.dump());
  std::string text;
  if (value.is_array()) {
    for (const Json& item : value) text += fmt::format("<li>{}", json_html(item));
    return text.empty() ? "none" : "<ul>" + text + "</ul>";
  }
  for (const auto& [key, item] : value.items()) {
    text += fmt::format("<tr><th>{}<td>{}\n", escaped(key), json_html(item));
  }
  return text.empty() ? "none" : "<table class=facts>" + text + "</table>";
}

std::string cost_sources(const std::vector<Point>& points) {
  std::map<std::string, std::size_t> counts;
  for (const Point& p : points) {
    if (p.ok()) ++counts[p.cost_source];
  }
  std::string text;
  for (const auto& [source, count] : counts) {
    text += fmt::format("<li>{} rows: {}", count, escaped(source.empty() ? "not said" : source));
  }
  return text.empty() ? "" : "<p>Costs that the rows rest on:</p><ul>" + text + "</ul>\n";
}

}  // namespace

std::string manifest_html(std::string_view manifest, const std::string& file) {
  Json json = Json::parse(manifest, nullptr, false);
  if (!json.is_object()) fail_input({file, 0, {}}, "is no JSON object", "what a sweep wrote");
  std::string text;
  if (const auto warnings = json.find("warnings"); warnings != json.end()) {
    if (!warnings->empty()) {
      text += fmt::format("<div class=note>Warnings: {}</div>\n", json_html(*warnings));
      json.erase("warnings");
    }
  }
  return text + json_html(json) + "\n";
}

std::string page_html(const csv::Table& table, const std::vector<Point>& points,
                      const std::vector<Drawing>& drawings, const std::string& provenance,
                      const std::string& notice) {
  const std::string verdict = fmt::format("{}", fmt::join(in_words(verdict_of(points)), " "));
  return page_start("lambcast report", "lambcast: does compressed training pay here?", {verdict},
                    notice) +
         figure_sections(drawings) + rows_section(table) + "<section><h2>Provenance</h2>\n" +
         cost_sources(points) + provenance + "</section>\n" + page_end();
}

}  // namespace lambcast::report
