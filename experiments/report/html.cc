#include "experiments/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "embedded/page_files.h"
#include "embedded/page_sums.h"

namespace lambcast::report {
namespace {

std::string_view file(std::string_view name) {
  const auto files = page_files();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const EmbeddedFile& one) { return one.name == name; });
  return found == files.end() ? std::string_view() : found->text;
}

std::string styles() {
  std::string text;
  for (const EmbeddedFile& one : page_files())
    if (one.name.ends_with(".css")) text.append(one.text).append("\n");
  return text;
}

// Returns the bytes of a text of hexadecimal digits in base64 (RFC 4648).
std::string base64_of_hex(std::string_view hex) {
  constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  // 6 hexadecimal digits (24 bits) become 4 letters
  for (std::size_t at = 0; at < hex.size(); at += 6) {
    const std::string_view digits = hex.substr(at, 6);
    unsigned bits = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
    bits <<= 4 * (6 - digits.size());
    for (std::size_t i = 0; i < 4; ++i)
      out += i * 3 < digits.size() * 2 ? letters[(bits >> (18 - 6 * i)) & 63] : '=';
  }
  return out;
}

// Returns the script sources of the Content-Security-Policy. The page runs only the scripts that
// ship with the program, so a script hidden in a name of the results is not run.
std::string allowed_scripts() {
  std::string sources;
  for (const ScriptSum& script : script_sums)
    sources += fmt::format(" 'sha256-{}'", base64_of_hex(script.sha256));
  return sources;
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
      "style-src 'unsafe-inline'; script-src{}\">\n"
      "<meta name=viewport content=\"width=device-width\">"
      "<meta name=color-scheme content=\"light dark\">\n"
      "<title>{}</title>\n<style>{}</style></head><body><main>\n<h1>{}</h1>\n",
      allowed_scripts(), escaped(title), styles(), escaped(heading));
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
  // Writes each file as one element, since a hash covers an element's whole text.
  std::string text =
      fmt::format("</main><!-- uPlot, by its licence:\n{}-->\n", file("uplot/LICENSE"));
  for (const ScriptSum& script : script_sums)
    text += fmt::format("<script>{}</script>\n", file(script.name));
  return text + "</body></html>\n";
}

}  // namespace lambcast::report
