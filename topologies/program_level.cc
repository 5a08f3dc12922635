#include "topologies/program_level.h"

#include <fmt/format.h>

#include "embedded/program_prior_files.h"
#include "sim/base/error.h"
#include "sim/base/range.h"

namespace lambcast {
namespace {

constexpr Range<double> any_level{0.05, 20};
constexpr std::int64_t no_cluster_has_more_gpus = 1 << 24;

}  // namespace

std::optional<ProgramLevel> decode_program_level(const Table& table) {
  // Every key is looked up, so that the generated reference lists it.
  const auto said = [&](auto... keys) { return (0 + ... + static_cast<int>(table.has(keys))); };
  const bool absent = said("framework", "format", "level", "low", "high", "spread", "fewest_gpus",
                           "most_gpus", "products", "attention", "element_wise") == 0;
  if (absent) return std::nullopt;
  ProgramLevel program;
  program.framework = table.get<std::string>("framework");
  program.format = table.get<std::string>("format");
  program.level = get_within(table, "level", any_level);
  program.low = table.get<double>("low");
  program.high = table.get<double>("high");
  if (!(program.low > 0 && program.low <= program.level.value &&
        program.level.value <= program.high))
    fail_input(table.where("level"),
               fmt::format("{} is outside its interval {} to {}", program.level.value, program.low,
                           program.high),
               "low <= level <= high, above 0");
  if (table.has("spread")) program.spread = table.get<double>("spread");
  if (!(program.spread >= 0)) fail_input(table.where("spread"), "must not be negative");
  const auto of_kind = [&](const char* key) {
    return table.has(key) ? get_within(table, key, any_level).value : 1.0;
  };
  program.kinds = {of_kind("products"), of_kind("attention"), of_kind("element_wise")};
  if (!table.has("fewest_gpus") && !table.has("most_gpus")) return program;
  program.fewest_gpus = static_cast<int>(table.integer("fewest_gpus", 1, no_cluster_has_more_gpus));
  program.most_gpus =
      static_cast<int>(table.integer("most_gpus", program.fewest_gpus, no_cluster_has_more_gpus));
  return program;
}

ProgramPrior decode_program_prior(const Table& root) {
  ProgramPrior prior;
  prior.spread = root.get<double>("spread");
  if (!(prior.spread > 0)) fail_input(root.where("spread"), "must be above zero");
  prior.programs = static_cast<int>(root.integer("programs", 1, 1000));
  prior.stacks = static_cast<int>(root.integer("stacks", 1, 1000));
  root.find_text("learned");
  root.finish();
  return prior;
}

const ProgramPrior& shipped_program_prior() {
  static const ProgramPrior prior =
      decode_program_prior(Table::parse(program_prior_files().front().text, "program_prior.toml"));
  return prior;
}

}  // namespace lambcast
