#include "tools/result_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/output_file.h"
#include "tools/terminal.h"

namespace lambcast {
namespace {

constexpr std::array texts{".json", ".csv", ".txt"};
constexpr std::array pictures{".svg", ".png"};

std::string ending_of(const std::string& path) {
  for (const char* ending : texts)
    if (path.ends_with(ending)) return ending;
  for (const char* ending : pictures)
    if (path.ends_with(ending)) return ending;
  return "";
}

bool is_picture(const std::string& ending) {
  return std::ranges::find(pictures, ending) != pictures.end();
}

// Returns the error message of a path for CLI11, or nothing.
std::string fault_of(const std::string& path, bool with_pictures) {
  const std::string ending = ending_of(path);
  if (path == "-" || (!ending.empty() && (with_pictures || !is_picture(ending)))) return "";
  return fmt::format("{} {} (allowed: FILE.json, FILE.csv, FILE.txt{}, - for stdout)", path,
                     ending.empty() ? "does not say its format"
                                    : "is a picture file, and this answer has no picture",
                     with_pictures ? ", FILE.svg, FILE.png" : "");
}

}  // namespace

CLI::Option* add_result_flags(CLI::App& command, ResultFlags& flags, const std::string& help,
                              bool with_pictures) {
  CLI::Option* format = command.add_option("--format", flags.format, help)
                            ->check(CLI::IsMember({"table", "json", "csv"}))
                            ->type_name("FORMAT")
                            ->group("Output");
  command
      .add_option(
          "--export", flags.exports,
          fmt::format("write the answer to a file too, FILE.json, FILE.csv or FILE.txt{} (-: "
                      "stdout, where --format goes anyway); may be repeated",
                      with_pictures ? ", or as a picture, FILE.svg or FILE.png" : ""))
      ->allow_extra_args(false)
      ->check([with_pictures](const std::string& path) { return fault_of(path, with_pictures); })
      ->type_name("FILE")
      ->group("Output");
  return format;
}

void write_exports(const ResultFlags& flags, const ResultTexts& result) {
  for (const std::string& path : flags.exports) {
    if (path == "-") continue;
    const std::string ending = ending_of(path);
    write_output(path, "--export",
                 is_picture(ending)  ? result.picture(ending)
                 : ending == ".json" ? result.json()
                 : ending == ".csv"  ? result.csv()
                                     : result.table());
  }
}

void print_result(const ResultFlags& flags, const ResultTexts& result) {
  write_exports(flags, result);
  if (flags.format == "json")
    fmt::print("{}", result.json());
  else if (flags.format == "csv")
    fmt::print("{}", result.csv());
  else
    print_text(result.table());
}

}  // namespace lambcast
