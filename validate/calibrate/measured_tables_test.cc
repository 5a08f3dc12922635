#include "validate/calibrate/measured_tables.h"

#include <catch2/catch.hpp>

#include "sim/base/error.h"

namespace lambcast::validate {
namespace {

Measurement table_of(Operation operation, int ranks, int nodes, const char* source) {
  Measurement table;
  table.operation = operation;
  table.ranks = ranks;
  table.nodes = nodes;
  table.provenance = {Kind::measured, source};
  return table;
}

TEST_CASE("measured tables: their library is named once, and NCCL is assumed if none is named") {
  std::vector<Measurement> tables{table_of(Operation::all_reduce, 16, 2, "a.log"),
                                  table_of(Operation::all_gather, 8, 1, "b.log")};
  CHECK(backend_of_tables(tables, {}) == Backend::nccl);
  CHECK(backend_of_tables(tables, Backend::mpi_host) == Backend::mpi_host);
  tables[1].backend = Backend::mpi_host;
  CHECK(backend_of_tables(tables, {}) == Backend::mpi_host);
  CHECK_THROWS_WITH(backend_of_tables(tables, Backend::nccl),
                    Catch::Contains("b.log: is a table of mpi, not of nccl"));
}

TEST_CASE("measured tables: few sources are named, many counted") {
  std::vector<Measurement> tables;
  for (const char* source : {"a", "b", "a"})
    tables.push_back(table_of(Operation::all_reduce, 16, 2, source));
  CHECK(sources_of(tables) == "a; b");
  for (const char* source : {"c", "d"})
    tables.push_back(table_of(Operation::all_reduce, 16, 2, source));
  CHECK(sources_of(tables) == "5 tables, the first: a");
}

TEST_CASE(
    "measured tables: the next command forecasts the largest table, and quotes its file for a "
    "shell") {
  const std::vector<Measurement> tables{table_of(Operation::all_reduce, 16, 2, "a"),
                                        table_of(Operation::stream, 2, 2, "b")};
  CHECK(forecast_command("mine.toml", tables, Backend::nccl) ==
        "lambcast collective --cluster mine.toml --op all_reduce --gpus 16 --gpus-per-node 8");
  CHECK(forecast_command("my machine", {&tables[1], 1}, Backend::mpi_host) ==
        "lambcast collective --cluster './my machine' --op send_recv --gpus 2 --gpus-per-node 1 "
        "--backend mpi");
  // The first of several equally large tables is chosen.
  const std::vector<Measurement> alike{table_of(Operation::all_gather, 16, 2, "a"),
                                       table_of(Operation::all_reduce, 16, 2, "b")};
  CHECK_THAT(forecast_command("mine.toml", alike, Backend::nccl),
             Catch::Contains("--op all_gather"));
}

}  // namespace
}  // namespace lambcast::validate
