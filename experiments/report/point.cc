#include "experiments/report/point.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lambcast::report {
namespace {

// A row that did not run keeps what was asked for, which may be no number: a freeze_step of "10%".
double number_or_nan(const csv::Table& table, std::size_t row, std::string_view title) {
  const bool ran = table.text(row, "status") == "ok";
  return !ran || table.text(row, title).empty() ? absent : table.number(row, title);
}

std::vector<Stage> read_stages(const csv::Table& table, std::size_t row) {
  std::vector<Stage> stages;
  for (const char* name : {"uniform", "warmup", "compression", "silent"}) {
    const double step_time = number_or_nan(table, row, fmt::format("{}_step_time_us", name));
    if (std::isnan(step_time)) continue;
    Stage stage{name, step_time, {}};
    for (std::size_t i = 0; i < part_names.size(); ++i) {
      const double part = number_or_nan(table, row, fmt::format("{}_{}_us", name, part_names[i]));
      stage.parts_us[i] = std::isnan(part) ? 0 : part;
    }
    stages.push_back(stage);
  }
  return stages;
}

// The settings that no number of a point says already: "a=1; samples=9; b=2" -> "a=1; b=2".
std::string other_settings(const std::string& settings) {
  std::string rest;
  for (std::size_t begin = 0; begin < settings.size();) {
    const std::size_t end = std::min(settings.find("; ", begin), settings.size());
    const std::string setting = settings.substr(begin, end - begin);
    if (!setting.starts_with("cluster.nic.bandwidth=") && !setting.starts_with("samples="))
      rest += (rest.empty() ? "" : "; ") + setting;
    begin = end + 2;
  }
  return rest;
}

}  // namespace

double Point::freeze_share() const {
  const double share = freeze_step / steps;
  return share > 1 ? 1 : share;
}

std::vector<Point> read_points(const csv::Table& table) {
  std::vector<Point> points;
  points.reserve(table.rows.size());
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const auto text = [&](std::string_view title) { return table.text(row, title); };
    const auto number = [&](std::string_view title) { return number_or_nan(table, row, title); };
    // These stand after `cost_source`, the end of the promised order: older files lack them.
    const auto late_text = [&](std::string_view title) {
      return table.has(title) ? text(title) : std::string();
    };
    Point p;
    p.model = text("model");
    p.cluster = text("cluster");
    p.optimizer = text("optimizer");
    p.backend = text("backend");
    p.cuda_aware = late_text("cuda_aware");
    p.kernels = late_text("kernels");
    p.network = late_text("network");
    p.device = late_text("device");
    p.precision = late_text("precision");
    p.zero_stage = late_text("zero_stage");
    p.overlap = late_text("overlap");
    p.symmetry = late_text("symmetry");
    p.settings = other_settings(late_text("settings"));
    p.nodes = number("nodes");
    p.gpus_per_node = table.has("gpus_per_node") ? number("gpus_per_node") : absent;
    p.gpus = number("gpus");
    p.micro_batch = number("micro_batch");
    p.grad_accum = number("grad_accum");
    p.global_batch = number("global_batch");
    p.seq_len = number("seq_len");
    p.steps = number("steps");
    p.freeze_step = number("freeze_step");
    p.nic_Gbps = table.has("nic_bandwidth_Gbps") ? number("nic_bandwidth_Gbps") : absent;
    p.stages = read_stages(table, row);
    p.run_time_s = number("run_time_s");
    p.samples_per_s = number("run_samples_per_s");
    p.speedup = number("speedup_vs_baseline");
    p.baseline = text("baseline_optimizer");
    p.status = text("status");
    p.cost_source = text("cost_source");
    points.push_back(std::move(p));
  }
  return points;
}

}  // namespace lambcast::report
