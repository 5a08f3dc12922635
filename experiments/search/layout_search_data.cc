#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "experiments/output/forecast_output.h"
#include "experiments/search/layout_search_output.h"
#include "sim/base/csv.h"
#include "sim/base/json.h"

namespace lambcast {
namespace {

Json compressed_json(const std::optional<CompressedLayout>& compressed) {
  if (!compressed) return nullptr;
  const bool runs = compressed->step_time_us.has_value();
  return {{"optimizer", compressed->optimizer},
          {"step_time_us", runs ? Json(*compressed->step_time_us) : Json(nullptr)},
          {"speedup", runs ? Json(compressed->speedup.value) : Json(nullptr)},
          {"refused", compressed->refused},
          {"speedup_low", runs ? Json(compressed->speedup.low) : Json(nullptr)},
          {"speedup_high", runs ? Json(compressed->speedup.high) : Json(nullptr)}};
}

Json layout_json(const FoundLayout& found) {
  const LayoutCandidate& layout = found.layout;
  const auto [loss, share] = found.shares.largest_loss();
  Json json{{"tp", layout.tp},
            {"cp", layout.cp},
            {"ep", layout.ep},
            {"etp", layout.etp == 0 ? layout.tp : layout.etp},
            {"pp", layout.pp},
            {"dp", found.dp},
            {"interleave", layout.interleave},
            {"split", found.split},
            {"micro_batch", layout.micro_batch},
            {"micro_batches", found.micro_batches},
            {"zero_stage", layout.zero_stage},
            {"recompute", layout.recompute},
            {"sequence_parallel", layout.sequence_parallel == "true"},
            {"step_time_us", found.step.step_time.us()},
            {"step_time_low_us", found.step.step_time_low.us()},
            {"step_time_high_us", found.step.step_time_high.us()},
            {"peak_bytes_per_gpu", found.peak.value()},
            {"samples_per_s", found.samples_per_s},
            {"tokens_per_s", found.tokens_per_s},
            {"tflops_per_gpu", found.tflops_per_gpu},
            {"mfu", found.utilization},
            {"shares",
             {{"compute", found.shares.compute},
              {"layers", found.shares.layers},
              {"gradients", found.shares.gradients},
              {"bubble", found.shares.bubble},
              {"compression", found.shares.compression},
              {"optimizer", found.shares.optimizer}}},
            {"largest_loss", loss},
            {"largest_loss_share", share},
            {"compressed", compressed_json(found.compressed)},
            {"quantized", compressed_json(found.quantized)},
            {"fp8", compressed_json(found.fp8)},
            {"simulate", simulate_line(found.what_if)},
            {"memory_tight", found.tight}};
  return json;
}

}  // namespace

std::string layout_search_json(const LayoutSearch& search) {
  const LayoutSpace& space = search.space;
  Json json{{"schema_version", 1},
            {"tool", "lambcast"},
            {"version", tool_version},
            {"inputs",
             {{"model", space.base.model->name},
              {"cluster", space.base.cluster->name},
              {"device", space.base.device->name},
              {"framework", std::string(name_of(space.base.parallelism->framework.name))},
              {"optimizer", search.optimizer},
              {"gpus", space.base.gpus},
              {"global_batch", search.space.global_batch},
              {"seq_len", space.base.seq_len}}},
            {"candidates", search.candidates},
            {"forecast", search.forecast},
            {"refused", Json::array()},
            {"layouts", Json::array()},
            {"best_compressed", nullptr}};
  for (const RefusedLayouts& refused : search.refused)
    json["refused"].push_back(
        {{"reason", refused.reason}, {"count", refused.count}, {"example", refused.example}});
  for (const FoundLayout& found : search.best) json["layouts"].push_back(layout_json(found));
  if (search.best_compressed) json["best_compressed"] = layout_json(*search.best_compressed);
  return json_lines(json);
}

namespace {

constexpr const char* csv_header =
    "rank,tp,cp,ep,pp,dp,interleave,micro_batch,micro_batches,zero_stage,recompute,"
    "sequence_parallel,step_time_us,step_time_low_us,step_time_high_us,peak_bytes_per_gpu,"
    "samples_per_s,tokens_per_s,tflops_per_gpu,mfu,largest_loss,largest_loss_share,"
    "compressed_optimizer,compressed_step_time_us,compressed_speedup,compressed_refused,"
    "quantized_step_time_us,quantized_speedup,fp8_step_time_us,fp8_speedup,split,"
    "memory_tight,compressed_speedup_low,compressed_speedup_high,quantized_speedup_low,"
    "quantized_speedup_high,fp8_speedup_low,fp8_speedup_high\n";

// Returns the value of a column: "compressed_speedup" is "speedup" of "compressed". Empty if there
// is none.
std::string cell_of(const Json& layout, const std::string& column) {
  for (const std::string kind : {"compressed", "quantized", "fp8"})
    if (column.starts_with(kind + "_"))
      return layout[kind].is_null() ? "" : cell_of(layout[kind], column.substr(kind.size() + 1));
  const Json& value = layout.at(column);
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? csv::number(value.get<double>()) : value.dump();
}

}  // namespace

std::string layout_search_csv(const LayoutSearch& search) {
  std::string out = csv_header;
  for (std::size_t i = 0; i < search.best.size(); ++i) {
    const Json layout = layout_json(search.best[i]);
    std::vector<std::string> row{fmt::format("{}", i + 1)};
    std::istringstream columns(csv_header);
    std::string column;
    std::getline(columns, column, ',');  // the rank
    while (std::getline(columns, column, ',')) {
      if (column.ends_with('\n')) column.pop_back();
      row.push_back(cell_of(layout, column));
    }
    out += csv::row(row) + "\n";
  }
  return out;
}

}  // namespace lambcast
