#include <fmt/format.h>

#include <iostream>

#include "sim/base/error.h"
#include "validate/measure/expected_result.h"
#include "validate/measure/measure.h"
#include "validate/measure/mpi_collectives.h"
#include "validate/measure/mpi_world.h"
#include "validate/measure/survey.h"

namespace lambcast::validate {
namespace {

class MpiRanks final : public SurveyedRanks {
 public:
  MpiRanks(int rank, int ranks) : rank_(rank), places_(gather_places(ranks)) {}

  const std::vector<RankPlace>& places() const override { return places_; }
  bool first() const override { return rank_ == 0; }

  bool value_of_first(bool mine) override {
    int value = mine ? 1 : 0;
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return value == 1;
  }

  std::uint64_t block_bytes(Operation operation, DataType type, int ranks) const override {
    if (is_sixteen_bit(type) && has_sum(operation)) return 0;
    if (operation == Operation::compressed_allreduce)
      return type == DataType::float32 ? deepspeed_block_bytes(ranks) : 0;
    return validate::block_bytes(operation, ranks, type);
  }

  int measure(const MeasureOptions& options, const std::vector<bool>& takes_part,
              std::ostream& out) override {
    const bool mine = takes_part[static_cast<std::size_t>(rank_)];
    MPI_Comm ranks = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, mine ? 0 : MPI_UNDEFINED, rank_, &ranks);
    int code = 0;
    if (mine) {
      measure_on(ranks);
      code = measure_mpi(options, out);
      measure_on(MPI_COMM_WORLD);
      MPI_Comm_free(&ranks);
    }
    return code;
  }

 private:
  int rank_;
  std::vector<RankPlace> places_;
};

}  // namespace

int survey_mpi(const SurveyOptions& survey, const MeasureOptions& options) {
  if (survey.step_weights > 0)
    fail_input({{}, 0, "--steps-of"}, "is for NCCL: MPI here runs no optimizer");
  const MpiSession mpi;
  check_world(mpi.ranks());
  MpiRanks ranks(mpi.rank(), mpi.ranks());
  try {
    return run_survey(survey, options, ranks, std::cin, std::cout);
  } catch (const std::exception& error) {
    if (mpi.ranks() == 1) throw;
    // Ends all ranks, since the others would wait for the first.
    fmt::print(stderr, "lambcast: {}\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, static_cast<int>(Exit::failure));
    throw;
  }
}

}  // namespace lambcast::validate
