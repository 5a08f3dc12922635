#include "validate/calibrate/fitted_tables.h"

#include <catch2/catch.hpp>

namespace lambcast::validate {
namespace {

Measurement made_up_table() {
  Measurement table;
  table.ranks = 16;
  table.rows = {{Bytes(1024), Duration::microseconds(10), {}},
                {Bytes(2048), Duration::microseconds(12), {}}};
  return table;
}

TEST_CASE("fitted tables: a fingerprint depends on the measurement, not on its origin") {
  const Measurement table = made_up_table();
  Measurement same = table;
  same.provenance.source = "another file";
  same.nodes = 2;
  std::swap(same.rows[0], same.rows[1]);
  CHECK(fingerprint(same, same.rows[1]) == fingerprint(table, table.rows[0]));
  // A copy with times changed by a millionth contains the same rows.
  same.rows[1].time = same.rows[1].time.scaled(1 + 1e-6);
  CHECK(fingerprint(same, same.rows[1]) == fingerprint(table, table.rows[0]));
  CHECK(fingerprints(same) ==
        fingerprint(table, table.rows[1]) + " " + fingerprint(table, table.rows[0]));
  for (const auto change : {+[](Measurement& of) { of.rows[0].time = Duration::microseconds(11); },
                            +[](Measurement& of) { of.rows[0].size = Bytes(512); },
                            +[](Measurement& of) { of.ranks = 8; },
                            +[](Measurement& of) { of.operation = Operation::broadcast; }}) {
    Measurement other = table;
    change(other);
    CHECK(fingerprint(other, other.rows[0]) != fingerprint(table, table.rows[0]));
  }
}

TEST_CASE(
    "fitted tables: a description has the rows of its own fit and of the preset it started from") {
  const FitOrigin none = fit_origin("name = 'x'\n", "x.toml");
  CHECK((none.rows.empty() && none.sources.empty()));
  const FitOrigin origin = fit_origin(
      "[calibration]\nsource = 'mine'\nfitted_tables = ['a b', 'c']\n"
      "[calibration.preset]\nsource = 'theirs'\nfitted_tables = ['d']\n",
      "x.toml");
  CHECK(origin.rows == std::vector<std::string>{"a", "b", "c", "d"});
  CHECK(origin.sources == std::vector<std::string>{"mine", "theirs"});
}

}  // namespace
}  // namespace lambcast::validate
