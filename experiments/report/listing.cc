#include "experiments/report/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/printable.h"

namespace lambcast::report {
namespace {

struct Heading {
  std::string_view heading, title;
  double unit;
  bool axis = false;
};

constexpr Heading headings[] = {{"model", "model", 0},
                                {"cluster", "cluster", 0},
                                {"optimizer", "optimizer", 0},
                                {"backend", "backend", 0},
                                {"GPUs", "gpus", 1},
                                {"micro batch", "micro_batch", 1},
                                {"accum.", "grad_accum", 1},
                                {"global batch", "global_batch", 1},
                                {"freeze_step", "freeze_step", 1},
                                {"NIC (Gbit/s)", "nic_bandwidth_Gbps", 1},
                                {"CUDA-aware", "cuda_aware", 0, true},
                                {"sequence", "seq_len", 1, true},
                                {"steps", "steps", 1, true},
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

// A string that cannot end the script element it stands in.
std::string json_text(std::string_view text) {
  std::string json;
  for (const char c : nlohmann::json(printable(text)).dump()) {
    if (c == '<') {
      json += "\\u003c";
    } else {
      json += c;
    }
  }
  return json;
}

// What was asked of a point that cannot run may be no number (a freeze_step of "10%"): it stays
// text.
std::string number_cell(std::string_view text, double unit) {
  if (text.empty()) return "\"\"";
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return json_text(text);
  value /= unit;
  const bool whole = value == std::floor(value) || std::abs(value) >= 1e3;
  return whole ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

}  // namespace

Listing::Listing(const csv::Reader& file) {
  for (const Heading& h : headings) {
    if (const auto index = file.find(h.title))
      columns_.push_back({*index, h.heading, h.unit, h.axis, {}, false, false, {}, {}, {}});
  }
}

void Listing::add(const csv::Reader& file) {
  if (++rows_ > most_rows) return;
  const std::string_view comma = rows_ > 1 ? "," : "";
  for (Column& column : columns_) {
    const std::string_view text = file.text(column.index);
    if (rows_ == 1) column.first = text;
    column.filled |= !text.empty();
    column.differs |= text != column.first;
    column.cells += comma;
    if (column.unit != 0) {
      column.cells += number_cell(text, column.unit);
      continue;
    }
    const auto [place, added] = column.places.try_emplace(std::string(text), column.places.size());
    if (added) {
      if (place->second > 0) column.names += ',';
      column.names += json_text(text);
    }
    column.cells += fmt::format_int(place->second).c_str();
  }
}

std::string Listing::html() const {
  const std::size_t count = std::min(rows_, most_rows);
  std::string text = fmt::format(
      "<section class=rows><h2>Rows</h2>\n<p>{} results.csv beside this page has every {}column, "
      "with full precision.</p>\n<noscript><p class=note>The table needs the page's script; "
      "without "
      "it, read results.csv.</p></noscript>\n<div class=scroll><table class=listing><thead><tr>",
      count < rows_ ? fmt::format("The first {} of {} rows.", count, rows_)
                    : fmt::format("All {} rows.", rows_),
      count < rows_ ? "row and " : "");
  std::string columns;
  for (const Column& column : columns_) {
    if (!shown(column)) continue;
    text += fmt::format("<th>{}", column.heading);
    columns += columns.empty() ? "\n{" : ",\n{";
    if (column.unit == 0) columns += fmt::format("\"names\":[{}],", column.names);
    columns += fmt::format("\"cells\":[{}]}}", column.cells);
  }
  return text +
         fmt::format(
             "</thead><tbody></tbody></table>\n<script type=\"application/json\">{{\"rows\":{},"
             "\"columns\":[{}]}}</script></div></section>\n",
             count, columns);
}

}  // namespace lambcast::report
