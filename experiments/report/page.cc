#include "experiments/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "experiments/report/html.h"
#include "experiments/report/verdict.h"
#include "sim/base/error.h"

namespace lambcast::report {
namespace {

using Json = nlohmann::ordered_json;

// A manifest is three levels deep; text that nests without end would end the stack.
constexpr int most_levels = 32;

// A longer list (the columns, a scan) stands in lines of text, not one item a line.
constexpr std::size_t most_items = 10;

std::string json_html(const Json& value) {
  if (value.is_string()) return escaped(value.get<std::string>());
  if (!value.is_structured()) return escaped(value.dump());
  std::string text;
  const bool plain = std::none_of(value.begin(), value.end(),
                                  [](const Json& item) { return item.is_structured(); });
  if (value.is_array() && plain && value.size() > most_items) {
    for (const Json& item : value)
      text += fmt::format("{}{}", text.empty() ? "" : ", ", json_html(item));
    return text;
  }
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
    if (p.ok()) ++counts[p.cost_source.text()];
  }
  std::string text;
  for (const auto& [source, count] : counts) {
    text += fmt::format("<li>{} rows: {}", count, escaped(source.empty() ? "not said" : source));
  }
  return text.empty() ? "" : "<p>Costs that the rows rest on:</p><ul>" + text + "</ul>\n";
}

}  // namespace

std::string manifest_html(std::string_view manifest, const std::string& file) {
  const auto within = [&file](int depth, Json::parse_event_t, const Json&) {
    if (depth > most_levels)
      fail_input({file, 0, {}}, "nests too deep", fmt::format("{} levels", most_levels));
    return true;
  };
  Json json = Json::parse(manifest, within, false);
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

std::string page_html(const Results& results, const std::vector<Drawing>& drawings,
                      const std::string& provenance, const std::string& notice) {
  const Verdict verdict = verdict_of(results.points);
  return page_start("lambcast report", "lambcast: does compressed training pay here?",
                    in_words(verdict), notice) +
         figure_sections(drawings) + results.listing.html() + "<section><h2>Provenance</h2>\n" +
         cost_sources(results.points) + provenance + "</section>\n" + page_end();
}

}  // namespace lambcast::report
