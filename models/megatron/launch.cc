#include "models/megatron/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <utility>

#include "models/megatron/shell_lexer.h"
#include "sim/base/error.h"

namespace lambcast::megatron {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// Returns the number that an option has in a row: 48 in "--nodes=48" and in "-N48", 8 in
// "--gres=gpu:a100:8"; empty for other values.
std::string option_value(std::string_view row, std::string_view name) {
  const std::size_t begin = row.find(" " + std::string(name));
  if (begin == row.npos) return {};
  std::string_view rest = row.substr(begin + 1 + name.size());
  const bool joined = name.size() == 2 && !rest.empty() && is_number(rest.substr(0, 1));
  if (!joined && rest.find_first_of("= :") != 0) return {};
  rest.remove_prefix(std::min(rest.find_first_not_of("= "), rest.size()));
  const std::string_view word = rest.substr(0, rest.find_first_of(" \t\r"));
  const std::string_view number = word.substr(word.rfind(':') + 1);
  return is_number(number) ? std::string(number) : "";
}

// Returns the variables that Slurm sets from #SBATCH lines and from the options of sbatch.
Variables slurm_variables(std::string_view text) {
  constexpr std::pair<std::string_view, const char*> options[] = {
      {"--nodes", "SLURM_NNODES"},
      {"-N", "SLURM_NNODES"},
      {"--ntasks", "SLURM_NTASKS"},
      {"-n", "SLURM_NTASKS"},
      {"--gres=gpu", "SLURM_GPUS_ON_NODE"},
      {"--gpus-per-node", "SLURM_GPUS_ON_NODE"},
      {"--ntasks-per-node", "SLURM_NTASKS_PER_NODE"}};
  Variables values;
  for (const std::string_view start : {"#SBATCH ", "sbatch "})
    for (std::size_t at = text.find(start); at != text.npos; at = text.find(start, at + 1)) {
      const std::string_view row = text.substr(at, text.find_first_of("\"'\n", at) - at);
      for (const auto& [option, name] : options)
        if (std::string value = option_value(row, option); !value.empty())
          values[name] = std::move(value);
    }
  if (values.contains("SLURM_NNODES")) values["SLURM_JOB_NUM_NODES"] = values["SLURM_NNODES"];
  return values;
}

// Returns the index of the program: a Python file or a module after -m whose name contains
// "pretrain", else the first Python file. Returns the number of words if there is no program.
std::size_t program_of(const std::vector<ShellWord>& words) {
  std::size_t first = words.size();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& text = words[i].text;
    const bool file = text.ends_with(".py");
    const bool named = file || (i > 0 && words[i - 1].text == "-m");
    if (named && text.find("pretrain") != text.npos) return i;
    if (file) first = std::min(first, i);
  }
  return first;
}

// Returns the name of the launch's program without its folder; empty if it has none.
std::string program_name(const Launch& launch) {
  const std::size_t program = program_of(launch.words);
  if (program == launch.words.size()) return {};
  const std::string& path = launch.words[program].text;
  return path.substr(path.rfind('/') + 1);
}

// Throws Error (usage) for a program whose model is not described by Megatron-LM's arguments here.
void check_program(const Launch& launch, const std::string& file) {
  constexpr std::pair<std::string_view, std::string_view> others[] = {
      {"mamba", "Mamba layers"},
      {"hybrid", "layers of several kinds"},
      {"retro", "retrieval (RETRO)"},
      {"ict", "the two encoders of an inverse cloze task"},
      {"biencoder", "two encoders"},
      {"realm", "two encoders"},
      {"vision", "images"},
      {"vlm", "images next to text"},
      {"multimodal", "images next to text"},
      {"t5", "an encoder next to a decoder"}};
  const std::string name = program_name(launch);
  for (const auto& [part, what] : others) {
    const std::size_t at = name.find(part);
    const bool whole = at != name.npos && at > 0 &&
                       std::isalpha(static_cast<unsigned char>(name[at - 1])) == 0 &&
                       std::isalpha(static_cast<unsigned char>(name[at + part.size()])) == 0;
    if (whole)
      fail_input(
          {file, launch.line, {}},
          fmt::format("{} trains a model of {}, whose scripts are not supported", name, what),
          part == "t5" ? "the run in flags, with --model t5-large or a description"
                       : "scripts of pretrain_gpt.py and pretrain_bert.py");
  }
}

bool names_model(const ShellWord& word) {
  return word.text.starts_with("--num-layers") || word.text.starts_with("--num_layers");
}

bool has_model(const Launch& launch) { return std::ranges::any_of(launch.words, names_model); }

// Returns the line, up to that of the launch, on which the argument last occurs outside comments.
int line_of(std::string_view text, std::string_view argument, int launched) {
  int found = launched, line = 1;
  for (std::size_t at = 0; at < text.size() && line <= launched; ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view row = text.substr(at, end - at);
    const std::size_t place = row.find(argument);
    if (place != row.npos && row.substr(0, place).find('#') == row.npos) found = line;
    at = end + 1;
  }
  return found;
}

// Returns whether a word starts a command in front of the program whose -n or -N counts no ranks,
// or nothing for a word that starts no known command.
std::optional<bool> is_wrapper(const std::string& word) {
  static const std::set<std::string_view> wrappers{"nice",   "ionice", "numactl",   "taskset",
                                                   "nsys",   "ncu",    "env",       "timeout",
                                                   "stdbuf", "docker", "apptainer", "singularity"};
  static const std::set<std::string_view> launchers{"srun",     "mpirun",   "mpiexec", "aprun",
                                                    "flux",     "jsrun",    "prun",    "orterun",
                                                    "torchrun", "deepspeed"};
  const std::string_view name = std::string_view(word).substr(word.rfind('/') + 1);
  if (wrappers.contains(name)) return true;
  return launchers.contains(name) ? std::optional(false) : std::nullopt;
}

// Returns the number that the launcher's words give for an option, by any of its names. A range of
// equal numbers, as in --nnodes=4:4, is that number.
std::string launcher_number(const std::vector<ShellWord>& words, std::size_t program,
                            const std::vector<std::string_view>& names) {
  std::string number;
  bool wrapped = false;
  for (std::size_t i = 0; i < program; ++i) {
    const std::string& text = words[i].text;
    wrapped = is_wrapper(text).value_or(wrapped);
    const std::size_t equals = std::min(text.find('='), text.size());
    if (std::ranges::find(names, text.substr(0, equals)) == names.end()) continue;
    if (wrapped && !text.starts_with("--")) continue;
    std::string value = equals < text.size()   ? text.substr(equals + 1)
                        : i + 1 < words.size() ? words[i + 1].text
                                               : "";
    const std::size_t colon = std::min(value.find(':'), value.size());
    if (value.substr(0, colon) == value.substr(std::min(colon + 1, value.size())))
      value.resize(colon);
    if (is_number(value)) number = value;
  }
  return number;
}

// Returns the product of two whole numbers in text; empty if one is missing or too long.
std::string times(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty() || a.size() + b.size() > 12) return {};
  return std::to_string(std::stoll(a) * std::stoll(b));
}

// Returns the GPUs of the launch as arguments of torchrun; empty if neither the launcher nor the
// variables of Slurm's job state them.
std::vector<ShellWord> world_of(const Launch& launch, std::size_t program, const Variables& job) {
  const auto number = [&](const std::vector<std::string_view>& names) {
    return launcher_number(launch.words, program, names);
  };
  std::string nodes = number({"--nnodes", "--num_nodes"});
  const std::string ranks = number({"--nproc_per_node", "--nproc-per-node", "--num_gpus"});
  const auto says = [&](std::string_view part) {
    return std::any_of(
        launch.words.begin(), launch.words.begin() + static_cast<std::ptrdiff_t>(program),
        [&](const ShellWord& word) { return word.text.find(part) != word.text.npos; });
  };
  std::string total = ranks.empty() ? number({"-np", "--ntasks", "-n"}) : "";
  if (says("accelerate") && ranks.empty()) total = number({"--num_processes", "--num-processes"});
  if (says("jsrun")) {  // -n counts sets of resources, of -a ranks each
    const std::string each = number({"-a", "--tasks_per_rs"});
    total = times(number({"-n", "--nrs"}), each.empty() ? "1" : each);
  }
  if (ranks.empty() && total.empty() && says("srun")) {
    const auto or_of_job = [&](std::string own, const char* name) {
      const auto of_job = job.find(name);
      return own.empty() && of_job != job.end() ? of_job->second : own;
    };
    const std::string each = number({"--ntasks-per-node", "--tasks-per-node"});
    total = times(or_of_job(number({"--nodes", "-N"}), "SLURM_NNODES"),
                  or_of_job(each, "SLURM_NTASKS_PER_NODE"));
    if (each.empty()) total = or_of_job(total, "SLURM_NTASKS");
  }
  if (nodes.empty() && !ranks.empty()) nodes = number({"--nodes", "-N"});
  // torchrun's default is one node.
  if (nodes.empty() && !ranks.empty() && !says("nnodes") && !says("srun") &&
      (says("torchrun") || says("torch.distributed")))
    nodes = "1";
  std::vector<ShellWord> words;
  const auto add = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    words.push_back({name, launch.line, {}, false});
    words.push_back({value, launch.line, {}, false});
  };
  add("--nnodes", nodes);
  add("--nproc-per-node", ranks);
  add("--world-size", total);
  return words;
}

std::vector<ShellWord> arguments_of(std::string_view text, const Launch& launch,
                                    const Variables& job) {
  std::size_t program = program_of(launch.words);
  std::vector<ShellWord> words;
  const bool named = program < launch.words.size();
  if (named) words = world_of(launch, program, job);
  // Arguments of the model are read too if they stand in front of the program.
  const auto model = std::ranges::find_if(launch.words, names_model);
  const bool before = model - launch.words.begin() < static_cast<std::ptrdiff_t>(program);
  const std::size_t end = named ? program : launch.words.size();
  if (!named || before) program = 0;
  bool arguments = false;
  int line = launch.line;
  for (std::size_t i = program + (named && !before ? 1 : 0); i < launch.words.size(); ++i) {
    ShellWord word = launch.words[i];
    if (word.text.starts_with("--")) {
      arguments = true;
      line = line_of(text, word.text.substr(0, word.text.find('=')), launch.line);
    }
    word.line = line;
    if (i != end && ((named && !before) || arguments)) words.push_back(std::move(word));
  }
  return words;
}

bool is_pretraining(const Launch& launch) {
  const std::string name = program_name(launch);
  return name.empty() || has_model(launch) || name.find("pretrain_") != std::string::npos;
}

// Throws Error (usage) if the script starts only other programs and has no model.
void refuse_other_program(std::string_view text, const std::string& file,
                          const std::vector<Launch>& launches) {
  for (const char* model : {"--num-layers", "--num_layers"})
    if (text.find(model) != text.npos) return;
  for (const Launch& launch : launches)
    if (const std::string name = program_name(launch); !name.empty() && !is_pretraining(launch))
      fail_input(
          {file, launch.line, {}},
          fmt::format("starts {}, which is not a program of Megatron-LM{}", name,
                      name == "deepy.py" ? ": GPT-NeoX reads YAML files, which are not read" : ""),
          "scripts of pretrain_gpt.py and pretrain_bert.py, or the run in flags");
}

// Throws Error (usage) for a file of another kind, which may hold the command of a launch.
void refuse_other_kind(std::string_view text, const std::string& file) {
  constexpr std::pair<std::string_view, std::string_view> others[] = {
      {"apiVersion:", "a manifest of Kubernetes"},
      {"import ", "a Python program"},
      {"FROM ", "a recipe of a container"},
      {"pipeline {", "a pipeline of Jenkins"}};
  const std::size_t begin = std::min(text.find_first_not_of("- \t\r\n"), text.size());
  for (const auto& [words, what] : others)
    if (text.substr(begin).starts_with(words) || (words == "import " && file.ends_with(".py")))
      fail_input({file, 0, {}}, fmt::format("is {}, whose commands are not read", what),
                 "the arguments of its command, written out");
}

bool same_words(const Launch& a, const Launch& b) {
  return std::ranges::equal(a.words, b.words, {}, &ShellWord::text, &ShellWord::text);
}

void check_given(std::string_view text, const std::string& file, const Variables& given) {
  for (const auto& [name, value] : given)
    if (text.find(name) == text.npos)
      fail_input({"", 0, "--set-var"}, fmt::format("'{}' is not a variable of {}", name, file));
}

// Without a launch the lists of a script are read directly, and given variables have no effect.
void check_unlaunched(const std::string& file, const Variables& given,
                      std::vector<Finding>& findings) {
  if (!given.empty())
    fail_input(
        {"", 0, "--set-var"},
        fmt::format("{} does not launch a training program, so --set-var has no effect", file),
        "the script that launches pretrain_*.py, or the arguments written out");
  findings.push_back(
      {Severity::note, "no-launch",
       describe({file, 0, {}},
                "does not launch a training program; its lists of arguments are read "
                "without replacing variables")});
}

// Returns the launch to read, if there is one.
std::optional<Launch> chosen(std::vector<Launch> launches, const std::string& file,
                             std::vector<Finding>& findings) {
  std::erase_if(launches, [](const Launch& launch) { return !is_pretraining(launch); });
  if (std::ranges::any_of(launches, has_model))
    std::erase_if(launches, [](const Launch& launch) { return !has_model(launch); });
  if (launches.empty()) return std::nullopt;
  const auto sure = std::ranges::find(launches, "", &Launch::condition);
  if (sure == launches.end()) {
    const std::string& name = launches.front().condition;
    const bool output = name == "output";
    fail_input({file, launches.front().line, {}},
               output ? "the launch depends on the output of a command"
                      : fmt::format("the launch depends on ${}, which has no value", name),
               output ? "the arguments written out"
                      : fmt::format("--set-var {}=VALUE, or the arguments written out", name));
  }
  check_program(*sure, file);
  for (std::size_t i = 0; i < program_of(sure->words); ++i)
    if (sure->words[i].text == "xargs" || sure->words[i].text == "parallel")
      fail_input({file, sure->line, {}},
                 fmt::format("{} adds arguments that another command prints, which are not read",
                             sure->words[i].text),
                 "write the arguments out, without the shell");
  std::set<int> named;
  for (const Launch& other : launches)
    if (!same_words(other, *sure) && named.insert(other.line).second)
      findings.push_back(
          {Severity::note, "other-launch",
           describe(
               {file, other.line, {}},
               other.line == sure->line
                   ? "launches again with other arguments: the first launch is read"
                   : fmt::format("another launch, which is not read: line {} is", sure->line))});
  return *sure;
}

}  // namespace

LaunchArguments launch_arguments(std::string_view text, const std::string& file,
                                 const Variables& given, std::vector<Finding>& findings) {
  check_given(text, file, given);
  refuse_other_kind(text, file);
  if (!text.starts_with("#!") && !names_program(text, ".py") && !names_program(text, "torchrun ")) {
    if (!given.empty())
      fail_input({"", 0, "--set-var"},
                 fmt::format("{} is a list of arguments, which has no variables", file),
                 "a launch script, which begins with #!");
    return {shell_words(text, file), {}, {}, {}};
  }
  Variables values = slurm_variables(text);
  for (const auto& [name, value] : given) values[name] = value;
  Script script = run_script(text, file, values);
  for (const ShellWord& stray : script.strays)
    findings.push_back({Severity::warning, "argument-not-passed",
                        describe({file, stray.line, stray.text},
                                 "begins another command: the launch ends before it")});
  for (const ShellWord& sourced : script.sourced)
    findings.push_back({Severity::note, "script-not-read",
                        describe({file, sourced.line, "source"},
                                 "the file is not read and may change variables set above it; try: "
                                 "--set-var NAME=VALUE for each that it sets")});
  refuse_other_program(text, file, script.launches);
  const auto launch = chosen(std::move(script.launches), file, findings);
  if (!launch) {
    check_unlaunched(file, given, findings);
    return {shell_words(text, file), {}, std::move(script.files), {}};
  }
  const std::size_t program = program_of(launch->words);
  const bool named = program < launch->words.size();
  return {arguments_of(text, *launch, values), named ? launch->words[program].text : "",
          std::move(script.files), std::move(script.reasons)};
}

}  // namespace lambcast::megatron
