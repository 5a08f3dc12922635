#include "tools/result_flags.h"

#include <fmt/format.h>

#include "tools/output_file.h"
#include "tools/terminal.h"

namespace lambcast {
namespace {

std::string ending_of(const std::string& path) {
  for (const char* ending : {".json", ".csv", ".txt"})
    if (path.ends_with(ending)) return ending;
  return "";
}

// As CLI11 asks for it: what is wrong, or nothing.
std::string fault_of(const std::string& path) {
  if (path == "-" || !ending_of(path).empty()) return "";
  return path + " does not say its format (allowed: FILE.json, FILE.csv, FILE.txt, - for stdout)";
}

}  // namespace

CLI::Option* add_result_flags(CLI::App& command, ResultFlags& flags, const std::string& help) {
  CLI::Option* format = command.add_option("--format", flags.format, help)
                            ->check(CLI::IsMember({"table", "json", "csv"}))
                            ->type_name("FORMAT")
                            ->group("Output");
  command
      .add_option(
          "--export", flags.exports,
          "write the answer to a file too, FILE.json, FILE.csv or FILE.txt (-: stdout, where "
          "--format goes anyway); may be repeated")
      ->allow_extra_args(false)
      ->check(fault_of)
      ->type_name("FILE")
      ->group("Output");
  return format;
}

void write_exports(const ResultFlags& flags, const ResultTexts& texts) {
  for (const std::string& path : flags.exports) {
    if (path == "-") continue;
    const std::string ending = ending_of(path);
    write_output(path, "--export",
                 ending == ".json"  ? texts.json()
                 : ending == ".csv" ? texts.csv()
                                    : texts.table());
  }
}

void print_result(const ResultFlags& flags, const ResultTexts& texts) {
  write_exports(flags, texts);
  if (flags.format == "json")
    fmt::print("{}", texts.json());
  else if (flags.format == "csv")
    fmt::print("{}", texts.csv());
  else
    print_text(texts.table());
}

}  // namespace lambcast
