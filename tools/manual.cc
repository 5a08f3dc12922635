#include "tools/manual.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "experiments/output/forecast_output.h"
#include "experiments/reference/reference.h"
#include "experiments/scenario/what_if.h"
#include "models/device/device.h"
#include "models/shape/load.h"
#include "topologies/cluster.h"

namespace lambcast {
namespace {

// Escapes text for roff, where a line that begins with a dot or an apostrophe is a request, and a
// hyphen is not a minus.
std::string roff(std::string_view text) {
  std::string out;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    begins = c == '\n';
  }
  return out;
}

std::string names_of(const CLI::Option& option) {
  std::string out;
  const auto add = [&](const std::string& name) { out += (out.empty() ? "" : ", ") + name; };
  for (const std::string& name : option.get_snames()) add("-" + name);
  for (const std::string& name : option.get_lnames()) add("--" + name);
  return out.empty() ? option.get_name() : out;
}

bool is_flag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

std::string options_of(const CLI::App& command) {
  std::string out;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    out += fmt::format(".TP\n.B {}{}\n{}\n", roff(names_of(*option)),
                       is_flag(*option) || option->get_type_name().empty()
                           ? ""
                           : fmt::format(" \\fI{}\\fR", roff(option->get_type_name())),
                       roff(option->get_description()));
  }
  return out;
}

std::string as_printed(const std::string& text) {
  return text.empty() ? "" : fmt::format(".PP\n.nf\n{}\n.fi\n", roff(text));
}

// Returns the possible values of a flag: those of its key, or the presets that it may name.
std::string words_after(const CLI::Option& option) {
  if (option.get_lnames().empty()) return "";
  std::string key = option.get_lnames().front();
  std::ranges::replace(key, '-', '_');
  if (key == "cluster" || key == "clusters")
    return fmt::format("{}", fmt::join(cluster_names(), " "));
  if (key == "device") return fmt::format("{}", fmt::join(device_names(), " "));
  if (key == "model") return fmt::format("{}", fmt::join(model_presets(), " "));
  const WhatIfKey* row = find_key(key);
  return row == nullptr ? "" : fmt::format("{}", fmt::join(row->words, " "));
}

std::string flags_of(const CLI::App& command) {
  std::string out;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) out += " --" + name;
  return out;
}

std::string command_names(const CLI::App& app) {
  std::string out;
  for (const CLI::App* command : app.get_subcommands({})) out += " " + command->get_name();
  return out;
}

Json flags_json(const CLI::App& command) {
  Json flags = Json::array();
  for (const CLI::Option* option : command.get_options())
    flags.push_back({{"name", names_of(*option)},
                     {"type", is_flag(*option) ? "" : option->get_type_name()},
                     {"help", option->get_description()},
                     {"required", option->get_required() ||
                                      option->get_description().starts_with("required: ")}});
  return flags;
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  std::string out = fmt::format(
      ".TH LAMBCAST 1 \"\" \"lambcast {}\" \"User Commands\"\n.SH NAME\nlambcast \\- {}\n"
      ".SH SYNOPSIS\n.B lambcast\n.I COMMAND\n[\\fIFLAGS\\fR]\n.SH OPTIONS\n{}",
      tool_version, roff(app.get_description()), options_of(app));
  for (const CLI::App* command : app.get_subcommands({})) {
    std::string name = command->get_name();
    std::ranges::transform(name, name.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    out += fmt::format(".SH {}\n.B lambcast {}\n.PP\n{}\n{}", name, roff(command->get_name()),
                       roff(command->get_description()), options_of(*command));
    for (const CLI::App* below : command->get_subcommands({}))
      out +=
          fmt::format(".TP\n.B {}\n{}\n", roff(below->get_name()), roff(below->get_description()));
    out += as_printed(command->get_footer());
  }
  return out + ".SH NOTES" + "\n" + as_printed(app.get_footer());
}

std::string bash_completion(const CLI::App& app) {
  std::string cases, words;
  for (const CLI::App* command : app.get_subcommands({})) {
    std::string known = flags_of(*command) + command_names(*command);
    cases += fmt::format("    {}) flags=\"{}{}\" ;;\n", command->get_name(), known, flags_of(app));
    for (const CLI::Option* option : command->get_options()) {
      const std::string after = words_after(*option);
      if (after.empty()) continue;
      const std::string line =
          fmt::format("    --{}) words=\"{}\" ;;\n", option->get_lnames().front(), after);
      if (words.find(line) == std::string::npos) words += line;
    }
  }
  return fmt::format(R"(# Completion of lambcast for bash, written by lambcast help bash.
_lambcast() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} flags words=
  case $before in
{}  esac
  if [ -n "$words" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word"; compgen -f -- "$word")
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}    *) flags="{}{}" ;;
  esac
  if [[ $word == -* || $COMP_CWORD -eq 1 || ${{COMP_WORDS[1]}} == presets || ${{COMP_WORDS[1]}} == help ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}}
complete -o filenames -F _lambcast lambcast
)",
                     words, cases, command_names(app), flags_of(app));
}

std::string zsh_completion(const CLI::App& app) {
  // Returns the text in quotes, between brackets.
  const auto quoted = [](const std::string& text) {
    std::string out;
    for (const char c : text) {
      if (c == '\'')
        out += "'\\''";
      else if (c == '[' || c == ']' || c == ':')
        out += fmt::format("\\{}", c);
      else
        out += c == '\n' ? ' ' : c;
    }
    return out;
  };
  std::string described, cases;
  for (const CLI::App* command : app.get_subcommands({})) {
    described +=
        fmt::format("    '{}:{}'\n", command->get_name(), quoted(command->get_description()));
    cases += fmt::format("    {})\n      _arguments -S", command->get_name());
    for (const CLI::App* of : {command, &app})
      for (const CLI::Option* option : of->get_options()) {
        if (option->get_lnames().empty()) continue;
        const std::string after = words_after(*option);
        cases += fmt::format(" \\\n        '--{}[{}]{}'", option->get_lnames().front(),
                             quoted(option->get_description()),
                             is_flag(*option) ? ""
                             : after.empty()  ? ":value:_files"
                                              : fmt::format(":value:({})", after));
      }
    cases += " \\\n        '*:file:_files'\n      ;;\n";
  }
  return fmt::format(R"(#compdef lambcast
# Completion of lambcast for zsh, written by lambcast help zsh.
local -a commands
commands=(
{})
if (( CURRENT == 2 )); then
  _describe command commands
  return
fi
case ${{words[2]}} in
{}esac
)",
                     described, cases);
}

std::string json_reference(const CLI::App& app) {
  Json json{{"schema_version", 1}, {"tool", "lambcast"}, {"version", tool_version}};
  json["flags"] = flags_json(app);
  for (const CLI::App* command : app.get_subcommands({}))
    json["commands"].push_back({{"name", command->get_name()},
                                {"help", command->get_description()},
                                {"flags", flags_json(*command)},
                                {"footer", command->get_footer()}});
  json.update(reference_json());
  return json_lines(json);
}

}  // namespace lambcast
