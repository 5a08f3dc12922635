#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <memory>

#include "sim/base/error.h"
#include "tools/commands.h"
#include "validate/replay/replay.h"

namespace lambcast {
namespace {

std::vector<ReplayCase> cases_from(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail_input({path, 0, {}}, "cannot be read");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse_cases(text, path);
}

}  // namespace

Command add_validate(CLI::App& app) {
  auto against = std::make_shared<std::string>();
  auto canary = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("validate", "forecast against measurement; exit code 3 past the limits");
  command->add_option("--against", *against,
                      "cases of your own, as validate/replay/published/*.csv");
  command->add_flag("--canary", *canary, "add a case that is wrong on purpose: must exit with 3");
  return [against, canary] {
    std::vector<ReplayCase> cases = against->empty() ? published_cases() : cases_from(*against);
    if (*canary) cases.push_back(canary_case());
    const ReplaySummary summary = replay(cases);
    fmt::print("{}", replay_table(summary));
    return static_cast<int>(summary.within ? Exit::done : Exit::limit);
  };
}

}  // namespace lambcast
