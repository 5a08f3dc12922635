#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/output/commit.h"
#include "experiments/output/forecast_output.h"
#include "sim/base/complaint.h"
#include "sim/base/error.h"
#include "tools/commands.h"
#include "tools/launched_ranks.h"
#include "tools/refusal_words.h"
#include "tools/short_help.h"
#include "tools/standard_streams.h"
#include "tools/terminal.h"
#include "tools/what_if_flags.h"

namespace {

using namespace lambcast;

const char* const footer = R"(Examples
  lambcast advise --model bert-large --cluster commodity-10gbe --gpus 32 --optimizer lamb \
    --global-batch 65536 --micro-batch 64 --steps 5993 --freeze-step 1000
  lambcast simulate --config ds.json --model bert-large --cluster my-cluster.toml --nodes 16
  lambcast sweep sweep.toml --out results --jobs 2
  lambcast collective --cluster hgx-h100-ndr --gpus 32 -b 1M -e 1G -f 4
Manual: share/doc/lambcast/manual/README.md under the folder that it is installed in,
tools/manual/README.md in the sources; online as the GitHub Pages of the repository.
Exit codes: 0 done, 1 failure, 2 bad usage or input, 3 a limit was exceeded,
4 hardware or library missing, 130/143 stopped by a signal.)";

struct CommandName {
  std::string_view name;
  Command (*add)(CLI::App&);
};

// Commands under one heading in `lambcast --help`.
struct CommandGroup {
  const char* name;
  std::vector<CommandName> commands;
};

const std::vector<CommandGroup>& command_groups() {
  static const std::vector<CommandGroup> groups{
      {"Questions",
       {{"simulate", add_simulate},
        {"advise", add_advise},
        {"plan", add_plan},
        {"compare", add_compare},
        {"sensitivity", add_sensitivity},
        {"solve", add_solve},
        {"sites", add_sites}}},
      {"Many at once", {{"sweep", add_sweep}, {"report", add_report}, {"rerun", add_rerun}}},
      {"The network alone", {{"collective", add_collective}}},
      {"Your machine",
       {{"survey", add_survey},
        {"measure", add_measure},
        {"profile", add_profile},
        {"calibrate", add_calibrate},
        {"freeze", add_freeze}}},
      {"What it rests on",
       {{"validate", add_validate}, {"presets", add_presets}, {"help", add_help}}}};
  return groups;
}

void add_settings(CLI::App& app) {
  app.add_option_function<std::string>(
         "--color",
         [](const std::string& when) {
           terminal_settings().color = when == "always"  ? Color::always
                                       : when == "never" ? Color::never
                                                         : Color::automatic;
         },
         "colour of verdicts and warnings: auto (on a terminal, unless NO_COLOR is set), always, "
         "never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN");
  app.add_flag_callback(
      "-q,--quiet", [] { terminal_settings().quiet = true; },
      "no progress and no notes: results and errors alone");
  app.add_flag_callback(
      "-v,--verbose", [] { terminal_settings().verbose = true; },
      "say what the program took, on stderr");
}

// Returns the commands that have the flag: "lambcast validate, lambcast report".
std::string commands_with(const std::string& flag) {
  CLI::App app;
  std::vector<std::string> names;
  for (const CommandGroup& group : command_groups())
    for (const CommandName& command : group.commands) {
      command.add(app);
      if (app.get_subcommands({}).back()->get_option_no_throw(flag) != nullptr)
        names.push_back(fmt::format("lambcast {}", command.name));
    }
  return fmt::format("{}", fmt::join(names, ", "));
}

// Returns the command whose flags were parsed.
std::string help_command(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? "lambcast --help"
                        : fmt::format("lambcast {} --help", parsed.front()->get_name());
}

// Returns the help of the command whose --help was given, or of the program.
std::string help_text(CLI::App& app) {
  const auto parsed = app.get_subcommands();
  if (parsed.empty() || !has_short_help(*parsed.front())) return app.help();
  return short_help(*parsed.front());
}

// Returns whether this process prints messages: only one process of a sweep does.
bool is_to_speak(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() || parsed.front()->get_name() != "sweep" || speaks_for_all();
}

int refuse(const CLI::App& app, const std::string& why) {
  // A message that ends with the allowed values, or with a suggestion, needs no help page.
  const bool has_answer =
      why.ends_with(')') || why.ends_with('?') || why.find("; try: ") != std::string::npos;
  if (is_to_speak(app)) {
    complain(has_answer ? why : fmt::format("{}; see {}", why, help_command(app)));
  } else {
    outlive_the_first();
  }
  return static_cast<int>(Exit::usage);
}

int timed(const Command& command) {
  const auto start = std::chrono::steady_clock::now();
  const int code = command();
  if (terminal_settings().verbose) {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    fmt::print(stderr, "lambcast: {} took {:.2f} s and {:.0f} MB\n", tool_version, passed.count(),
               static_cast<double>(usage.ru_maxrss) * 1024e-6);
  }
  return code;
}

// Returns the words in reverse order, as CLI11 takes them. Words after `measure` are passed to
// another program.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.empty() || words.front() != "measure") words = with_switches_spelled_out(words);
  std::ranges::reverse(words);
  return words;
}

struct AddedCommand {
  CLI::App* app;
  Command run;
};

// Declaring the flags of every command takes longer than a forecast. So only the commands in the
// words are added; all of them if none is named or for `help`.
std::vector<AddedCommand> add_commands(CLI::App& app, int argc, char** argv) {
  const std::vector<std::string_view> words(argv + std::min(argc, 1), argv + argc);
  const auto is_named = [&](const CommandName& command) {
    return std::ranges::find(words, command.name) != words.end();
  };
  const bool is_version = words.size() == 1 && words.front() == "--version";
  const bool are_all_needed =
      !is_version && (std::ranges::find(words, "help") != words.end() ||
                      std::ranges::none_of(command_groups(), [&](const CommandGroup& group) {
                        return std::ranges::any_of(group.commands, is_named);
                      }));
  std::vector<AddedCommand> added;
  for (const CommandGroup& group : command_groups())
    for (const CommandName& command : group.commands) {
      if (!are_all_needed && !is_named(command)) continue;
      Command run = command.add(app);
      CLI::App* flags = app.get_subcommands({}).back();
      flags->group(group.name);
      // A command that passes its words to another program takes all of them.
      if (!flags->get_prefix_command()) flags->fallthrough();
      add_help_all(*flags);
      added.push_back({flags, std::move(run)});
    }
  return added;
}

struct Program {
  CLI::App app{"Forecasts what compressed large-batch training does on a given cluster.",
               "lambcast"};
  std::vector<AddedCommand> commands;

  Program(int argc, char** argv) {
    app.formatter(std::make_shared<HelpFormatter>());
    app.set_version_flag("--version", fmt::format("lambcast {} ({})", tool_version, tool_commit));
    app.footer(footer);
    app.require_subcommand(0, 1);
    add_settings(app);
    commands = add_commands(app, argc, argv);
  }
  // Returns the parsed command; null if there is none.
  const Command* parsed() const {
    const auto at = std::ranges::find_if(
        commands, [](const AddedCommand& command) { return command.app->parsed(); });
    return at == commands.end() ? nullptr : &at->run;
  }
};

// Runs the words with only their own flags declared. Returns nothing if that is not a complete
// command: help and messages need all flags.
std::optional<int> run_at_once(int argc, char** argv, std::vector<std::string> words) {
  if (std::ranges::find(words, "help") != words.end()) return std::nullopt;
  declare_only(&words);
  Program program(argc, argv);
  declare_only(nullptr);
  try {
    program.app.parse(words);
  } catch (const CLI::ParseError&) {
    return std::nullopt;
  }
  const Command* command = program.parsed();
  return command == nullptr ? std::nullopt : std::optional(timed(*command));
}

// Returns whether a word before --help is an unknown command: the help of another command would
// hide the mistake.
bool names_unknown_command(const CLI::App& app) {
  const std::vector<std::string> rest = app.remaining(true);
  return !rest.empty() && !rest.front().starts_with('-');
}

int run(int argc, char** argv) {
  const std::vector<std::string> words = words_of(argc, argv);
  if (const auto code = run_at_once(argc, argv, words)) return *code;
  Program program(argc, argv);
  CLI::App& app = program.app;
  try {
    app.parse(std::vector<std::string>(words));
  } catch (const CLI::CallForHelp&) {
    if (names_unknown_command(app)) return refuse(app, unknown_words(app, words, commands_with));
    if (is_to_speak(app)) show_help(help_text(app));
    return 0;
  } catch (const CLI::CallForAllHelp&) {
    if (names_unknown_command(app)) return refuse(app, unknown_words(app, words, commands_with));
    if (is_to_speak(app)) show_help(app.help());
    return 0;
  } catch (const CLI::ExtrasError&) {
    return refuse(app, unknown_words(app, words, commands_with));
  } catch (const CLI::RequiredError& error) {
    return refuse(app, missing_words(app, error.what()));
  } catch (const CLI::ParseError& error) {
    // --version is not an error; every error is one line.
    if (error.get_exit_code() == 0) return app.exit(error);
    return refuse(app, in_our_words(error));
  }
  if (const Command* command = program.parsed()) return timed(*command);
  fmt::print(stderr, "{}\n", wrapped(app.help(), 80));
  throw Error(Exit::usage, "a command is missing; allowed: those listed above");
}

// Ends the program after an exception that no handler can catch: toml++ parses in functions
// declared noexcept, so bad_alloc in them ends here. This function does not allocate.
[[noreturn]] void end() {
  std::string_view reason =
      "internal error, please report it with its command: unhandled exception";
  try {
    if (std::current_exception() != nullptr) throw;
  } catch (const std::bad_alloc&) {
    reason = no_memory;
  } catch (...) {
  }
  for (const std::string_view part :
       {std::string_view("lambcast: "), reason, std::string_view("\n")})
    if (write(STDERR_FILENO, part.data(), part.size()) < 0) break;
  std::_Exit(static_cast<int>(Exit::failure));
}

// Returns the message, with the flag of the file at its beginning unless it names that flag.
std::string with_flag_of_file(const std::string& message, int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].starts_with("--") ? words[i].find('=') : std::string::npos;
    const bool has_own = equals != std::string::npos;
    const std::string& flag = words[has_own ? i : i - 1];
    const std::string file = has_own ? words[i].substr(equals + 1) : words[i];
    if (!flag.starts_with('-') || file.empty() || !message.starts_with(file + ": ")) continue;
    const std::string name = has_own ? flag.substr(0, equals) : flag;
    return message.find(name + ":") == std::string::npos ? fmt::format("{} {}", name, message)
                                                         : message;
  }
  return message;
}

int exit_code_of(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    const Complaint complaint = complaint_of(error);
    // main() reports a stdout that cannot be written, so there is no message here.
    if (std::ferror(stdout) == 0 || dynamic_cast<const Error*>(&error) != nullptr)
      complain(with_flag_of_file(complaint.text, argc, argv));
    return static_cast<int>(complaint.code);
  }
}

// Under a limit of addresses (`ulimit -v`) threads share one arena. Separate arenas reserve 64 MiB
// each, and a failed reservation is repeated in every allocation: 100 times as slow.
void settle_allocator() {
  rlimit addresses{};
  if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY)
    mallopt(M_ARENA_MAX, 1);
}

}  // namespace

int main(int argc, char** argv) {
  std::set_terminate(end);
  settle_allocator();
  lambcast::settle_standard_streams();
  const int code = exit_code_of(argc, argv);
  return lambcast::exit_code_of_stdout().value_or(code);
}
