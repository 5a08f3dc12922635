#include "experiments/report/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "embedded/page_files.h"

namespace lambcast::report {
namespace {

std::string_view file(std::string_view name) {
  const auto files = page_files();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const EmbeddedFile& one) { return one.name == name; });
  return found == files.end() ? std::string_view() : found->text;
}

std::string all_files(std::string_view ending) {
  std::string text;
  if (ending == ".js")
    text = fmt::format("/* uPlot, by its licence:\n{}*/\n", file("uplot/LICENSE"));
  for (const EmbeddedFile& one : page_files())
    if (one.name.ends_with(ending)) text.append(one.text).append("\n");
  return text;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string page_start(std::string_view title, std::string_view heading) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\n"
      "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
      "<meta name=viewport content=\"width=device-width\">"
      "<meta name=color-scheme content=\"light dark\">\n"
      "<title>{}</title>\n<style>{}</style></head><body><main>\n<h1>{}</h1>\n",
      escaped(title), all_files(".css"), escaped(heading));
}

std::string verdict_box(const std::vector<std::string>& verdict) {
  std::string text = "<div class=verdict>";
  for (const std::string& paragraph : verdict)
    text += fmt::format("<p>{}</p>\n", escaped(paragraph));
  return text + "</div>\n";
}

std::string figure_sections(const std::vector<Figure>& figures) {
  std::string text;
  for (const Figure& figure : figures) {
    if (figure.chart.empty()) continue;
    text += fmt::format(
        "<section><h2>{}</h2>\n<figure class=chart><script type=\"application/json\">{}</script>"
        "<div class=panels></div><figcaption>{} <span class=file>plots/{}</span></figcaption>"
        "</figure></section>\n",
        escaped(figure.title), figure.chart, escaped(figure.caption), figure.name);
  }
  return text;
}

std::string page_end() {
  return fmt::format("</main><script>{}</script></body></html>\n", all_files(".js"));
}

}  // namespace lambcast::report
