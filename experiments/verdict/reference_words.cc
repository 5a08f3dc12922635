#include "experiments/verdict/reference_words.h"

#include <map>

#include "embedded/reference_files.h"
#include "sim/base/table.h"

namespace lambcast {
namespace {

using Lines = std::map<std::string, std::string, std::less<>>;

std::map<std::string, Lines, std::less<>> read() {
  std::map<std::string, Lines, std::less<>> sections;
  for (const EmbeddedFile& file : reference_files()) {
    const Table root = Table::parse(file.text, std::string(file.name));
    for (const std::string& section : root.keys()) {
      const Table lines = root.table(section);
      for (const std::string& name : lines.keys())
        sections[section][name] = lines.get<std::string>(name);
    }
  }
  return sections;
}

const Lines& lines_of(std::string_view section) {
  static const auto sections = read();
  return sections.find(section)->second;
}

}  // namespace

std::string meaning_of(std::string_view section, std::string_view name) {
  const Lines& lines = lines_of(section);
  auto line = lines.find(name);
  if (line == lines.end()) line = lines.find(name.substr(name.rfind('.') + 1));
  return line == lines.end() ? "" : line->second;
}

std::vector<std::string> explained(std::string_view section) {
  std::vector<std::string> names;
  for (const auto& [name, line] : lines_of(section)) names.push_back(name);
  return names;
}

}  // namespace lambcast
