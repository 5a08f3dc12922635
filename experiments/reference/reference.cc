#include "experiments/reference/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "embedded/schemas.h"
#include "experiments/output/metric.h"
#include "experiments/scenario/what_if.h"
#include "experiments/sweep/result_parts.h"
#include "experiments/sweep/result_row.h"
#include "experiments/verdict/reference_words.h"
#include "models/device/device.h"
#include "models/shape/load.h"
#include "sim/base/asked_keys.h"
#include "topologies/cluster.h"
#include "topologies/sites/site_group.h"

namespace lambcast {
namespace {

constexpr std::size_t name_width = 28;

struct Entry {
  std::string name, type, help;
};

struct Section {
  std::string title, words;
  std::vector<Entry> entries;
};

std::string words_of_type(const WhatIfKey& key) {
  switch (key.type) {
    case ValueType::whole:
      return "whole number";
    case ValueType::number:
      return "number";
    case ValueType::share_or_whole:
      return "whole number or per cent";
    case ValueType::words:  // the key's help lists the words
      return key.words.size() == 2 && key.words.back() == "true" ? "true or false" : "word";
    case ValueType::text:
      break;
  }
  return "text";
}

std::vector<Section> key_sections() {
  std::vector<Section> sections;
  for (const WhatIfKey& key : what_if_table()) {
    if (sections.empty() || sections.back().title != key.group)
      sections.push_back({std::string(key.group), "", {}});
    sections.back().entries.push_back({std::string(key.name), words_of_type(key), help_of(key)});
  }
  sections.front().words =
      "Every key of a description is one too (`lambcast help descriptions`), with whose it is in "
      "front: cluster.nic.bandwidth, device.peak_half, device.rates.share_half, model.layers. Keys "
      "of the device change the one that the run uses.";
  return sections;
}

// Returns the keys of one kind of description, without those of other files that are read with it.
template <typename Load>
Section description(const std::string& title, const std::string& kind,
                    const std::vector<std::string>& presets, Load load,
                    const std::vector<std::string>& others = {}) {
  // Nothing else may be read meanwhile, since its keys would be recorded too.
  const auto keys = [&] {
    const AskedKeys asked;
    for (const std::string& name : presets) load(name);
    return asked.keys();
  }();
  Section section{title, "", {}};
  for (const auto& [key, what] : keys)
    if (std::ranges::find(others, key.substr(0, key.find('.'))) == others.end())
      section.entries.push_back({key, what, meaning_of(kind, key)});
  return section;
}

std::vector<Section> descriptions() {
  std::vector<Section> sections{
      description("Clusters", "cluster", cluster_names(),
                  [](const std::string& name) { load_cluster(name, {}); }, {"rdma", "socket"}),
      description("Devices", "device", device_names(),
                  [](const std::string& name) { load_device(name); }, {"model"}),
      description("Models", "model", model_presets(),
                  [](const std::string& name) { load_model(name); }),
      description("Sites", "sites", site_group_names(),
                  [](const std::string& name) { load_sites(name); })};
  sections.front().words = fmt::format(
      "Keys of descriptions, as their readers ask for them; a number with its evidence is {{ value "
      "= ..., kind = \"{}\", source = \"...\" }}. --set, --list and --scan name them with whose "
      "they "
      "are in front: cluster.nic.bandwidth.",
      fmt::join(kind_names, ", "));
  sections[1].words =
      "--set, --list and --scan: device.peak_half; those of [rates] and of curves with device. in "
      "front too: device.rates.share_half, device.kernel.NAME.time_us, "
      "device.layer.HIDDEN.HEADS.FFN.SEQ_LEN.forward_us, "
      "device.training_curve.MODEL.IMPLEMENTATION.SEQ_LEN.samples_per_s (values of a curve: a list "
      "of as many).";
  return sections;
}

// Returns the meaning of a column of one kind of step ("warmup_step_time_us"), or of the run.
std::string meaning_of_column(const std::string& column) {
  constexpr std::string_view step_time = "step_time_us";
  for (const std::string& of_kind : result_columns()) {
    if (!of_kind.ends_with(step_time)) continue;
    const std::string kind = of_kind.substr(0, of_kind.size() - step_time.size());
    if (column.starts_with(kind)) return meaning_of("stage", column.substr(kind.size()));
  }
  return meaning_of("column", column);
}

std::vector<Section> columns() {
  Section section{"Columns of results.csv",
                  "One row a point; empty: does not apply. Columns of steps of one kind begin with "
                  "it, as warmup_.",
                  {}};
  for (const std::string& column : result_columns())
    section.entries.push_back({column, "", meaning_of_column(column)});
  Section parts{"Columns of parts.csv",
                "`lambcast report DIR --parts`: a row for every part of a step of every phase; the "
                "parts of a phase add up to its step_time_us.",
                {}};
  for (const std::string& column : part_columns())
    parts.entries.push_back({column, "", meaning_of_column(column)});
  return {section, parts};
}

void add_fields(const Json& schema, const std::string& path, Section& section) {
  if (schema.contains("items")) return add_fields(schema.at("items"), path + "[]", section);
  if (!schema.contains("properties")) return;
  for (const auto& [name, of] : schema.at("properties").items()) {
    const std::string full = path.empty() ? name : path + "." + name;
    std::string type;
    if (of.contains("type"))
      for (const auto& one :
           of.at("type").is_array() ? of.at("type") : Json::array({of.at("type")}))
        type += (type.empty() ? "" : " or ") + one.get<std::string>();
    section.entries.push_back({full, type, of.value("description", "")});
    add_fields(of, full, section);
  }
}

std::vector<Section> fields() {
  std::vector<Section> sections;
  for (const EmbeddedFile& file : schemas()) {
    const Json schema = parse_json(file.text);
    sections.push_back({schema.value("title", ""), "", {}});
    add_fields(schema, "", sections.back());
  }
  return sections;
}

std::vector<Section> findings() {
  Section section{
      "Codes of findings",
      "In \"findings\" of JSON, in [] behind messages: what each means, and what to do.",
      {}};
  for (const std::string& code : finding_codes())
    section.entries.push_back({code, "", meaning_of("finding", code)});
  return {section};
}

std::vector<Section> metric_section() {
  Section section{"Metrics of solve", "", {}};
  for (const Metric& metric : metrics())
    section.entries.push_back(
        {std::string(metric.name), std::string(metric.unit), std::string(metric.help)});
  return {section};
}

struct Topic {
  const char* name;
  std::vector<Section> (*sections)();
};
constexpr Topic topics[] = {{"keys", key_sections}, {"descriptions", descriptions},
                            {"columns", columns},   {"fields", fields},
                            {"findings", findings}, {"metrics", metric_section}};

}  // namespace

const std::vector<std::string>& reference_topics() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Topic& topic : topics) all.emplace_back(topic.name);
    return all;
  }();
  return names;
}

std::string reference_text(std::string_view name) {
  const auto* topic = std::ranges::find(topics, name, &Topic::name);
  std::string out;
  for (const Section& section : topic->sections()) {
    if (!section.words.empty()) out += section.words + "\n\n";
    out += section.title + "\n";
    for (const Entry& entry : section.entries) {
      std::string help = entry.type;
      if (!entry.help.empty()) help += (help.empty() ? "" : "; ") + entry.help;
      // A name longer than the column gets a line of its own.
      const bool fits = entry.name.size() <= name_width;
      out += fmt::format("  {:<{}}{}{}\n", entry.name, name_width,
                         fits ? "  " : fmt::format("\n{:{}}", "", name_width + 4), help);
    }
    out += "\n";
  }
  return out;
}

std::string reference_page() {
  std::string out = "# What has a name in lambcast\n\nGenerated by `lambcast help reference`.\n";
  const auto cell = [](const std::string& text) {
    std::string escaped;
    for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
    return escaped;
  };
  for (const Topic& topic : topics) {
    out += fmt::format("\n## {}\n", topic.name);
    for (const Section& section : topic.sections()) {
      out += fmt::format("\n### {}\n\n", section.title);
      if (!section.words.empty()) out += section.words + "\n\n";
      out += "| name | type | |\n| --- | --- | --- |\n";
      for (const Entry& entry : section.entries)
        out += fmt::format("| `{}` | {} | {} |\n", entry.name, cell(entry.type), cell(entry.help));
    }
  }
  return out;
}

Json reference_json() {
  Json json;
  for (const Topic& topic : topics)
    for (const Section& section : topic.sections()) {
      Json entries = Json::array();
      for (const Entry& entry : section.entries)
        entries.push_back({{"name", entry.name}, {"type", entry.type}, {"help", entry.help}});
      json[topic.name].push_back(
          {{"section", section.title}, {"note", section.words}, {"entries", std::move(entries)}});
    }
  return json;
}

}  // namespace lambcast
