#include "validate/survey/survey_tables.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "sim/base/temporary_folder.h"
#include "validate/measure/survey.h"

namespace lambcast {
namespace {

using validate::Operation;

TEST_CASE("survey: all nodes, then powers of two below") {
  CHECK(validate::surveyed_node_counts(8, true) == std::vector{8, 1, 2, 4});
  CHECK(validate::surveyed_node_counts(8, false) == std::vector{8, 2, 4});
  CHECK(validate::surveyed_node_counts(3, false) == std::vector{3, 2});
  CHECK(validate::surveyed_node_counts(1, true) == std::vector{1});
}

TEST_CASE("survey: its flags are removed from those of measure") {
  using validate::DataType;
  std::vector<std::string> flags{
      "--tables", "mine",       "-b",       "1K", "--op",       "all_reduce,alltoall",
      "-d",       "half,float", "--budget", "30", "--steps-of", "7"};
  const auto survey = validate::take_survey_flags(flags);
  REQUIRE(survey);
  CHECK(survey->folder == "mine");
  CHECK(survey->operations == std::vector{Operation::all_reduce, Operation::all_to_all});
  CHECK(survey->types == std::vector{DataType::half, DataType::float32});
  CHECK(survey->budget_s == 30);
  CHECK(survey->step_weights == 7);
  CHECK_FALSE(survey->steered);
  CHECK(flags == std::vector<std::string>{"-b", "1K"});
  std::vector<std::string> none{"-b", "1K", "--op", "all_reduce"};
  CHECK_FALSE(validate::take_survey_flags(none));
  CHECK(none.size() == 4);
  std::vector<std::string> wrong{"--tables", "mine", "--budget", "soon"};
  CHECK_THROWS_WITH(validate::take_survey_flags(wrong), Catch::Contains("--budget"));
  std::vector<std::string> cut{"--tables"};
  CHECK_THROWS_WITH(validate::take_survey_flags(cut), Catch::Contains("has no value"));
  CHECK(validate::survey_table_name(Operation::all_reduce, DataType::half, 4) ==
        "all_reduce-half-n4.csv");
}

TEST_CASE("survey: a plan is forecast before, tables are compared after") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "plan.csv") << "table,operation,nodes,ranks,size_bytes\n"
                                               "all_reduce-n2.csv,all_reduce,2,2,65536\n"
                                               "all_reduce-n2.csv,all_reduce,2,2,1048576\n"
                                               "all_gather-n2.csv,all_gather,2,2,65536\n";
  const std::vector<validate::Measurement> planned =
      planned_tables(folder.path() / "plan.csv", Backend::mpi_host);
  REQUIRE(planned.size() == 2);
  CHECK(planned[0].rows.size() == 2);
  CHECK(planned[1].operation == Operation::all_gather);
  const std::string forecast = survey_forecast_csv("commodity-10gbe", planned);
  CHECK(std::ranges::count(forecast, '\n') == 4);
  CHECK(forecast.find("\nall_reduce,2,2,1048576,") != std::string::npos);

  std::filesystem::create_directory(folder.path() / "tables");
  const std::string header =
      "# collective: all_reduce\n# ranks: 2\n# nodes: 2\n# gpus_per_node: 1\n# kind: measured\n"
      "# source: a test\nsize_bytes,time_us,algbw_GBps,busbw_GBps,in_place_us\n";
  // 1,048,576 bytes in 2,000 us are 0.524288 GB/s, for two ranks also as busbw. The time in place,
  // half of it, is used.
  std::ofstream(folder.path() / "tables" / "all_reduce-n2.csv")
      << header << "1048576,2000,0.524288,0.524288,1000\n";
  // This table has only its header.
  std::ofstream(folder.path() / "tables" / "all_gather-n2.csv") << header;
  const std::vector<validate::Measurement> measured = surveyed_tables(folder.path());
  REQUIRE(measured.size() == 1);
  CHECK(measured[0].ranks == 2);
  const SurveyComparison compared =
      survey_comparison("commodity-10gbe", "commodity-25gbe", measured);
  CHECK(compared.table.find("all_reduce") != std::string::npos);
  CHECK(std::ranges::count(compared.table, '\n') == 2);
  CHECK(compared.csv.find("\nall_reduce,2,2,1048576,1000.000,") != std::string::npos);
  CHECK(compared.median_before > 0);
}

TEST_CASE("survey: every third size is held out, none of a short table") {
  validate::Measurement table;
  for (int size = 1; size <= 6; ++size)
    table.rows.push_back({Bytes(size), Duration::seconds(size), {}});
  validate::Measurement small = table;
  small.rows.resize(2);
  const SurveyRows rows = hold_out_sizes({table, small});
  REQUIRE(rows.fitted.size() == 2);
  REQUIRE(rows.held_out.size() == 1);
  const auto sizes = [](const validate::Measurement& of) {
    std::vector<double> values;
    for (const validate::Row& row : of.rows) values.push_back(row.size.value());
    return values;
  };
  CHECK(sizes(rows.fitted[0]) == std::vector<double>{1, 3, 4, 6});
  CHECK(sizes(rows.held_out[0]) == std::vector<double>{2, 5});
  CHECK(sizes(rows.fitted[1]) == std::vector<double>{1, 2});
}

TEST_CASE(
    "survey: a compressed exchange is shown next to the plain one, and not fitted over NCCL") {
  const auto table = [](Operation operation, int ranks, const char* type, double time_s) {
    validate::Measurement of;
    of.operation = operation;
    of.ranks = ranks;
    of.backend = Backend::nccl;
    of.notes = {{"options", fmt::format("-d {} -b 8", type)}};
    of.rows = {{Bytes(1024), Duration::seconds(1), {}},
               {Bytes(4096), Duration::seconds(time_s), {}}};
    return of;
  };
  const std::vector<validate::Measurement> tables{
      table(Operation::all_reduce, 8, "half", 2), table(Operation::all_reduce, 8, "float", 6),
      table(Operation::all_reduce, 4, "float", 3),
      table(Operation::compressed_allreduce, 8, "float", 4)};
  const std::string text = exchanges_side_by_side(tables);
  CHECK(std::ranges::count(text, '\n') == 1);
  CHECK(text.find("over 8 ranks is 1.50x as fast as all_reduce") != std::string::npos);
  CHECK(forecast_tables(tables).size() == 3);
  CHECK(exchanges_side_by_side(forecast_tables(tables)).empty());
}

TEST_CASE("survey: a damaged plan is named") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "plan.csv")
      << "table,operation,nodes,ranks,size_bytes\na.csv,all_reduce,two,2,65536\n";
  CHECK_THROWS_WITH(planned_tables(folder.path() / "plan.csv", Backend::mpi_host),
                    Catch::Contains("plan.csv:2: nodes: 'two'"));
}

}  // namespace
}  // namespace lambcast
