// Parses mapping files, each with a table after a line "----"; without one, parses a table of a
// user's runs.
#include "sim/base/fuzz_target.h"
#include "validate/replay/source.h"
#include "validate/replay/user_runs.h"

FUZZ_TARGET(mapping, text) {
  using namespace lambcast;
  const std::size_t end = text.find("----\n");
  if (end == std::string_view::npos)
    may_refuse([&] { figures_of_runs(parse_rows(text, "runs.csv")); });
  const Source source = Source::parse(text.substr(0, end), "mapping.toml");
  if (end != std::string_view::npos) source.figures(parse_rows(text.substr(end + 5), "rows.csv"));
}
