#include "experiments/report/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/report/page_style.h"

namespace lambcast::report {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

// Removes from `begin` to the end of the first `end` after it, as often as it occurs.
void remove_all(std::string& text, std::string_view begin, std::string_view end) {
  for (std::size_t at; (at = text.find(begin)) != std::string::npos;) {
    const std::size_t stop = text.find(end, at + begin.size());
    text.erase(at, stop == std::string::npos ? stop : stop + end.size() - at);
  }
}

std::string figure_section(const Drawing& drawing) {
  const Figure& figure = drawing.figure;
  std::string text = fmt::format("<section><h2>{}</h2>\n", escaped(figure.title));
  if (!figure.left_out.empty()) {
    return text +
           fmt::format("<p class=note>Not drawn. {}</p></section>\n", escaped(figure.left_out));
  }
  const std::string picture = drawing.svg.empty()
                                  ? fmt::format(
                                        "<p class=note>Not drawn; its sources are plots/{0}.gp and "
                                        "plots/{0}.dat.</p>\n",
                                        figure.name)
                                  : inline_svg(drawing.svg, figure.name, figure.title);
  return text + fmt::format(
                    "<figure>{}<figcaption>{} <span class=file>plots/{}.svg</span></figcaption>"
                    "</figure></section>\n",
                    picture, escaped(figure.caption), figure.name);
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

std::string inline_svg(std::string_view svg, std::string_view name, std::string_view title) {
  std::string text(svg.substr(std::min(svg.find("<svg"), svg.size())));
  remove_all(text, " xmlns=\"", "\"");
  remove_all(text, " xmlns:xlink=\"", "\"");
  remove_all(text, "<title>", "</title>");
  remove_all(text, "<desc>", "</desc>");
  replace_all(text, "xlink:href", "href");
  for (const char* quote : {"'", "\""}) {
    replace_all(text, fmt::format(" id={}", quote), fmt::format(" id={}{}-", quote, name));
    replace_all(text, fmt::format("href={}#", quote), fmt::format("href={}#{}-", quote, name));
  }
  replace_all(text, "url(#", fmt::format("url(#{}-", name));
  const std::size_t end = std::min(text.find('>'), text.size());
  text.insert(std::min(end + 1, text.size()), fmt::format("<title>{}</title>", escaped(title)));
  return text;
}

std::string page_start(std::string_view title, std::string_view heading,
                       const std::vector<std::string>& verdict, std::string_view notice) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\n"
      "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
      "<meta name=viewport content=\"width=device-width\">"
      "<meta name=color-scheme content=\"light dark\">\n"
      "<title>{}</title>\n<style>{}</style></head><body><main>\n"
      "<h1>{}</h1>\n<div class=verdict>",
      escaped(title), page_css, escaped(heading));
  for (const std::string& paragraph : verdict)
    text += fmt::format("<p>{}</p>\n", escaped(paragraph));
  text += "</div>\n";
  if (!notice.empty()) text += fmt::format("<p class=note>{}</p>\n", escaped(notice));
  return text;
}

std::string figure_sections(const std::vector<Drawing>& drawings) {
  std::string text;
  for (const Drawing& drawing : drawings) text += figure_section(drawing);
  return text;
}

std::string page_end() {
  return fmt::format("</main><script>{}</script></body></html>\n", page_script);
}

}  // namespace lambcast::report
