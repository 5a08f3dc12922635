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

TEST_CASE("fitted tables: a fingerprint is of what was measured, not of how it is written down") {
  const Measurement table = made_up_table();
  Measurement same = table;
  same.provenance.source = "another file";
  same.nodes = 2;
  std::swap(same.rows[0], same.rows[1]);
  CHECK(fingerprint(same) == fingerprint(table));
  // A size measured twice, of which the median counts: 9, 11 -> 10 us.
  same.rows = {{Bytes(1024), Duration::microseconds(9), {}},
               {Bytes(1024), Duration::microseconds(11), {}},
               {Bytes(2048), Duration::microseconds(12), {}}};
  CHECK(fingerprint(same) == fingerprint(table));
  for (const auto change : {+[](Measurement& of) { of.rows[0].time = Duration::microseconds(11); },
                            +[](Measurement& of) { of.rows[0].size = Bytes(512); },
                            +[](Measurement& of) { of.ranks = 8; },
                            +[](Measurement& of) { of.operation = Operation::broadcast; },
                            +[](Measurement& of) { of.rows.pop_back(); }}) {
    Measurement other = table;
    change(other);
    CHECK(fingerprint(other) != fingerprint(table));
  }
}

TEST_CASE("fitted tables: a description names its own and those of the preset it started from") {
  CHECK(fitted_tables("name = 'x'\n", "x.toml").empty());
  CHECK(fitted_tables("[calibration]\nfitted_tables = ['a', 'b']\n"
                      "[calibration.preset]\nfitted_tables = ['c']\n",
                      "x.toml") == std::vector<std::string>{"a", "b", "c"});
}

}  // namespace
}  // namespace lambcast::validate
