#include <fmt/format.h>

#include <memory>

#include "experiments/reference/reference.h"
#include "sim/base/error.h"
#include "tools/commands.h"
#include "tools/input_keys.h"
#include "tools/manual.h"
#include "tools/short_help.h"
#include "tools/terminal.h"

namespace lambcast {
namespace {

// Generated texts for the files of an installation.
struct Generated {
  std::string_view name;
  std::string (*write)(const CLI::App&);
};
constexpr Generated generated[] = {
    {"reference", [](const CLI::App&) { return reference_page(); }},
    {"inputs", [](const CLI::App&) { return input_keys_summary(); }},
    {"input-keys", [](const CLI::App&) { return input_keys_list(); }},
    {"json", json_reference},
    {"man", manual_page},
    {"bash", bash_completion},
    {"zsh", zsh_completion}};

int print_help(CLI::App& app, const std::string& topic) {
  if (topic.empty()) {
    // CLI::App::help() would print the help of the parsed command, which is `help` itself.
    show_help(app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal));
    return 0;
  }
  std::vector<std::string> known;
  for (const std::string& name : reference_topics()) known.push_back(name);
  for (const auto& [name, write] : generated) known.emplace_back(name);
  for (CLI::App* command : app.get_subcommands({})) {
    known.push_back(command->get_name());
    if (command->get_name() != topic) continue;
    show_help(short_help(*command));
    return 0;
  }
  for (const auto& [name, write] : generated)
    if (name == topic) {
      fmt::print("{}", write(app));
      return 0;
    }
  for (const std::string& name : reference_topics()) {
    if (name != topic) continue;
    show_help(reference_text(name));
    return 0;
  }
  fail_unknown({"", 0, "TOPIC"}, "topic", topic, known);
}

}  // namespace

Command add_help(CLI::App& app) {
  auto topic = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "help",
      "a command, or a reference: keys, descriptions, columns, fields, findings, metrics, inputs, "
      "input-keys");
  command->add_option(
      "TOPIC", *topic,
      "default: a list of the commands; or a command; keys (of what-ifs and sweep files), "
      "descriptions (of "
      "clusters, devices, models), "
      "columns (CSV), fields (JSON), findings, metrics; inputs (keys of the files that are read, "
      "counted by their effect), input-keys (their names); reference (all of them, as Markdown); "
      "json "
      "(all of them and all flags, for programs); man, bash, zsh (manual page, completions)");
  command->footer(R"(Examples
  lambcast help keys
  lambcast help reference > reference.md)");
  return [&app, topic] { return print_help(app, *topic); };
}

}  // namespace lambcast
