#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "validate/measure/measure.h"
#include "validate/measure/mpi_collectives.h"
#include "validate/measure/mpi_world.h"
#include "validate/measure/survey.h"

namespace lambcast::validate {
namespace {

namespace fs = std::filesystem;

struct Nodes {
  int count = 0;
  bool several_ranks = false;
  std::vector<int> of_rank;  // node of each rank, numbered by first appearance
};

Nodes nodes_of(const std::vector<RankPlace>& places) {
  std::map<std::string, int> known;
  Nodes nodes;
  for (const RankPlace& place : places) {
    const auto [node, is_new] = known.try_emplace(place.host, nodes.count);
    if (is_new) ++nodes.count;
    nodes.several_ranks = nodes.several_ranks || !is_new;
    nodes.of_rank.push_back(node->second);
  }
  return nodes;
}

struct PlannedTable {
  Operation operation;
  int nodes, ranks;
};

std::vector<PlannedTable> planned_tables(const SurveyOptions& survey, const Nodes& nodes) {
  std::vector<PlannedTable> tables;
  for (const int count : surveyed_node_counts(nodes.count, nodes.several_ranks))
    for (const Operation operation : survey.operations) {
      const auto ranks =
          std::ranges::count_if(nodes.of_rank, [&](int node) { return node < count; });
      if (ranks > 1) tables.push_back({operation, count, static_cast<int>(ranks)});
    }
  return tables;
}

std::uint64_t block_of_table(Operation operation, int ranks) {
  return operation == Operation::compressed_allreduce ? deepspeed_block_bytes(ranks)
                                                      : block_bytes(operation, ranks);
}

// Writes a row for each table and size. A rename makes the complete file appear at once.
void write_plan(const SurveyOptions& survey, const MeasureOptions& options,
                const std::vector<PlannedTable>& tables) {
  fs::create_directories(fs::path(survey.folder) / "tables");
  const fs::path plan = fs::path(survey.folder) / "plan.csv", begun = plan.string() + ".tmp";
  {
    std::ofstream file(begun);
    file << "table,operation,nodes,ranks,size_bytes\n";
    for (const PlannedTable& table : tables)
      for (const std::uint64_t size :
           sizes_to_run(options, block_of_table(table.operation, table.ranks)))
        file << fmt::format("{},{},{},{},{}\n", survey_table_name(table.operation, table.nodes),
                            name_of(table.operation), table.nodes, table.ranks, size);
    if (!file.flush()) throw Error(Exit::failure, plan.string() + ": cannot be written");
  }
  fs::rename(begun, plan);
}

// Returns whether time is left on rank 0; the result is the same on every rank.
bool has_time(double begun, double budget_s) {
  int left = MPI_Wtime() - begun < budget_s ? 1 : 0;
  MPI_Bcast(&left, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return left == 1;
}

int run_table(const SurveyOptions& survey, const PlannedTable& table, MeasureOptions options,
              bool takes_part, int rank) {
  MPI_Comm ranks = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, rank, &ranks);
  int code = 0;
  if (takes_part) {
    measure_on(ranks);
    options.operation = table.operation;
    std::ofstream file;
    if (rank == 0)
      file.open(fs::path(survey.folder) / "tables" /
                survey_table_name(table.operation, table.nodes));
    code = measure_mpi(options, file);
    measure_on(MPI_COMM_WORLD);
    MPI_Comm_free(&ranks);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return code;
}

}  // namespace

int survey_mpi(const SurveyOptions& survey, const MeasureOptions& options) {
  const MpiSession mpi;
  check_world(mpi.ranks());
  const double begun = MPI_Wtime();
  const Nodes nodes = nodes_of(gather_places(mpi.ranks()));
  const std::vector<PlannedTable> tables = planned_tables(survey, nodes);
  if (tables.empty())
    throw Error(Exit::usage,
                "survey: one rank measures no collective; start it with mpirun or srun");
  try {
    if (mpi.rank() == 0) write_plan(survey, options, tables);
  } catch (const std::exception& error) {
    // Ends all ranks, since the others would wait for the first.
    fmt::print(stderr, "lambcast: {}\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, static_cast<int>(Exit::failure));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  int code = 0;
  for (const PlannedTable& table : tables) {
    if (!has_time(begun, survey.budget_s)) break;
    const bool takes_part = nodes.of_rank[static_cast<std::size_t>(mpi.rank())] < table.nodes;
    code |= run_table(survey, table, options, takes_part, mpi.rank());
  }
  return code;
}

}  // namespace lambcast::validate
