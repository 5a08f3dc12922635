#include "experiments/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "experiments/report/answer.h"
#include "experiments/report/html.h"
#include "experiments/report/palette.h"
#include "experiments/report/summary.h"
#include "experiments/verdict/reference_words.h"
#include "sim/base/error.h"
#include "sim/base/json.h"

namespace lambcast::report {
namespace {

// Limit of nesting, since deeper text would overflow the stack. A manifest has three levels.
constexpr int most_levels = 32;

// Longer lists (the columns, a scan) are written as text, not one item per line.
constexpr std::size_t most_items = 10;

std::string json_html(const Json& value, const std::string& file, int level = 0) {
  if (level > most_levels)
    fail_input({file, 0, {}}, "nests too deep", fmt::format("{} levels", most_levels));
  if (value.is_string()) return escaped(value.get<std::string>());
  if (!value.is_structured()) return escaped(json_line(value));
  std::string text;
  const bool plain = std::none_of(value.begin(), value.end(),
                                  [](const Json& item) { return item.is_structured(); });
  if (value.is_array() && plain && value.size() > most_items) {
    for (const Json& item : value)
      text += fmt::format("{}{}", text.empty() ? "" : ", ", json_html(item, file, level + 1));
    return text;
  }
  if (value.is_array()) {
    for (const Json& item : value) text += fmt::format("<li>{}", json_html(item, file, level + 1));
    return text.empty() ? "none" : "<ul>" + text + "</ul>";
  }
  for (const auto& [key, item] : value.items()) {
    text += fmt::format("<tr><th>{}<td>{}\n", escaped(key), json_html(item, file, level + 1));
  }
  return text.empty() ? "none" : "<table class=facts>" + text + "</table>";
}

std::string cost_sources(const std::map<std::string, std::size_t>& counts) {
  std::string text;
  for (const auto& [source, count] : counts) {
    text += fmt::format("<li>{} rows: {}", count, escaped(source.empty() ? "not said" : source));
  }
  return text.empty() ? "" : "<p>Costs that the rows rest on:</p><ul>" + text + "</ul>\n";
}

// Appends the rows as JSON, with the swept keys, the step kinds, the step parts and their colours.
// If rows were left out, the JSON states which.
void append_rows(std::string& page, const Listing& listing, const std::vector<std::string>& swept) {
  page += "{\"swept\":[";
  for (const std::string& key : swept) {
    if (page.back() != '[') page += ',';
    page += json_text(key);
  }
  page += "],\"stages\":[";
  for (std::size_t i = 0; i < step_kinds.size(); ++i)
    page += fmt::format("{}[{},{}]", i == 0 ? "" : ",", json_text(name_of(step_kinds[i])),
                        json_text(adjective_of(step_kinds[i])));
  page += "],\"parts\":[";
  for (std::size_t i = 0; i < part_looks.size(); ++i)
    page += fmt::format("{}[{},{},{}]", i == 0 ? "" : ",",
                        json_text(i < step_parts.size() ? step_parts[i] : part_looks[i].label),
                        json_text(part_looks[i].label), json_text(part_looks[i].colour));
  page += fmt::format("],\"total\":{},\"thinning\":", listing.rows());
  const std::string thinning = listing.thinning();
  page += json_text(thinning.empty()
                        ? std::string()
                        : fmt::format("The page holds {} of the {} rows of results.csv: {}.",
                                      listing.kept(), listing.rows(), thinning));
  page += ',';
  listing.append_json(page);
  page += '}';
}

std::string plots_section(const std::vector<std::string>& plots) {
  if (plots.empty()) return {};
  return fmt::format(
      "<section><h2>Pictures for papers</h2>\n<p>In plots/ beside this page, with the gnuplot "
      "sources and data of each: <span class=file>{}</span></p></section>\n",
      escaped(fmt::format("{}", fmt::join(plots, ", "))));
}

// Lists the findings of the rows, each kind with its meaning.
std::string findings_section(const Summary& summary) {
  if (summary.findings.empty()) return {};
  std::string text = "<section><h2>Findings</h2>\n<ul class=findings>\n";
  for (const auto& [code, count] : summary.findings)
    text += fmt::format("<li><b>{}</b>, {} row{}: {}\n", escaped(code), count,
                        count == 1 ? "" : "s", escaped(meaning_of("finding", code)));
  return text + "</ul></section>\n";
}

}  // namespace

std::string manifest_html(std::string_view manifest, const std::string& file) {
  Json json = parse_json(manifest);
  if (!json.is_object()) fail_input({file, 0, {}}, "is not a JSON object", "what a sweep wrote");
  if (json.find("tool") == json.end() || json.at("tool") != "lambcast")
    fail_input({file, 0, "tool"},
               "is not \"lambcast\": another program wrote the file, or it is damaged",
               "what a sweep wrote; without the file the page lacks its inputs alone");
  std::string text;
  if (const auto warnings = json.find("warnings"); warnings != json.end()) {
    if (!warnings->empty()) {
      text += fmt::format("<div class=note>Warnings: {}</div>\n", json_html(*warnings, file, 1));
      json.erase("warnings");
    }
  }
  return text + "<details><summary>Inputs, axes, columns and the sweep file</summary>\n" +
         json_html(json, file) + "\n</details>\n";
}

std::vector<std::string> swept_keys(std::string_view manifest) {
  const Json json = parse_json(manifest);
  std::vector<std::string> keys;
  const auto axes = json.is_object() ? json.find("axes") : json.end();
  if (json.is_object() && axes != json.end() && axes->is_object())
    for (const auto& [key, values] : axes->items()) keys.push_back(key);
  return keys;
}

std::string study_name(std::string_view manifest) {
  const Json json = parse_json(manifest);
  if (!json.is_object()) return {};
  const auto name = json.find("name");
  return name != json.end() && name->is_string() ? name->get<std::string>() : std::string();
}

std::string page_html(const Results& results, const PageFacts& facts) {
  const Summary& summary = results.summary;
  std::string page =
      page_start(facts.study.empty() ? "lambcast report" : "lambcast report: " + facts.study,
                 fmt::format("{}: {}", facts.study.empty() ? "lambcast" : facts.study,
                             compares(summary) ? "does compressed training pay here?"
                                               : "a sweep of training runs"));
  page += answer_html(answer_of(results, summary));
  page +=
      "<div id=explorer></div>\n<noscript><p class=note>Pictures and rows need the page's script; "
      "without it, read results.csv and plots/ beside this page.</p></noscript>\n"
      "<script type=\"application/json\" id=rows-data>";
  append_rows(page, results.listing, facts.swept);
  page += "</script>\n<section><h2>In words</h2>\n" + verdict_box(in_words(summary)) +
          "</section>\n" + findings_section(summary) + "<section><h2>Provenance</h2>\n" +
          cost_sources(summary.cost_sources) + facts.provenance + "</section>\n" +
          plots_section(facts.plots) + page_end();
  return page;
}

}  // namespace lambcast::report
