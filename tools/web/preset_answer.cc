#include "tools/web/preset_answer.h"

#include <nlohmann/json.hpp>

#include "experiments/output/forecast_output.h"
#include "experiments/output/judgement.h"
#include "experiments/report/palette.h"
#include "experiments/scenario/scenario.h"
#include "models/shape/load.h"
#include "models/training/run/forecast.h"
#include "sim/base/complaint.h"
#include "sim/base/json.h"
#include "topologies/cluster.h"

namespace lambcast {
namespace {

Json curve_point(WhatIf texts, const std::string& key, const std::string& value, Catalog& catalog,
                 CollectiveCosts& costs) {
  Json point{{"value", value}};
  texts[key] = value;
  try {
    const Scenario scenario = resolve(texts, catalog);
    const Forecast result = forecast(scenario.training, costs);
    const Json whole = parse_json(forecast_json(scenario, result, judgement_of(scenario, result)));
    point["run"] = whole["run"];
    point["fits"] = whole["memory"]["fits"];
  } catch (const Error& error) {
    point["refused"] = error.what();
  }
  return point;
}

}  // namespace

std::string preset_answer() {
  Json models = Json::array(), clusters = Json::array(), parts = Json::array();
  for (std::size_t i = 0; i < report::part_looks.size(); ++i) {
    const auto& [label, colour] = report::part_looks[i];
    parts.push_back({i < step_parts.size() ? step_parts[i] : label, label, colour});
  }
  for (const std::string& name : model_presets())
    models.push_back({{"name", name}, {"parameters", parameters(load_model(name))}});
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = load_cluster(name, {});
    clusters.push_back(
        {{"name", name},
         {"gpus_per_node", cluster.gpus_per_node},
         {"device", cluster.device},
         {"nics", cluster.nics},
         {"nic_Gbps", cluster.nic_nominal.value.value() * 8e-9},
         {"usd_per_gpu_hour",
          cluster.usd_per_gpu_hour ? Json(cluster.usd_per_gpu_hour->value) : Json(nullptr)},
         {"text", cluster_text(name)}});
  }
  return json_line(
      {{"version", tool_version}, {"models", models}, {"clusters", clusters}, {"parts", parts}});
}

std::string curve_answer(const WhatIf& texts, const std::string& key,
                         const std::vector<std::string>& values) {
  Catalog catalog;
  CollectiveCosts costs;
  Json points = Json::array();
  for (const std::string& value : values)
    points.push_back(curve_point(texts, key, value, catalog, costs));
  return json_line(points);
}

}  // namespace lambcast
