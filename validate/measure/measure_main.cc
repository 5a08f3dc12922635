// lambcast-measure --backend mpi|nccl [flags]: the program that `lambcast measure` runs. It is
// separate, since it links MPI and NCCL, which would slow the start of every other command.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <optional>
#include <thread>

#include "sim/base/complaint.h"
#include "sim/base/error.h"
#include "validate/measure/launch.h"
#include "validate/measure/measure.h"
#include "validate/measure/survey.h"

namespace {

// Removes `--backend NAME` from the flags; the remaining flags are those of nccl-tests.
bool take_backend_is_mpi(std::vector<std::string>& flags) {
  const auto flag = std::find(flags.begin(), flags.end(), "--backend");
  if (flag == flags.end() || flag + 1 == flags.end())
    lambcast::fail_input({"", 0, "--backend"}, "is missing", "nccl, mpi");
  const std::string name = *(flag + 1);
  flags.erase(flag, flag + 2);
  if (name != "mpi" && name != "nccl")
    lambcast::fail_unknown({"", 0, "--backend"}, "backend", name,
                           std::vector<std::string>{"nccl", "mpi"});
  return name == "mpi";
}

}  // namespace

int main(int argc, char** argv) {
  using namespace lambcast::validate;
  const bool first = is_first(process_environment());
  try {
    std::vector<std::string> flags(argv + 1, argv + argc);
    const auto asks = [](const std::string& flag) { return flag == "-h" || flag == "--help"; };
    if (std::any_of(flags.begin(), flags.end(), asks)) {
      if (first) std::cout << measure_help() << "\n";
      return 0;
    }
    const bool mpi = take_backend_is_mpi(flags);
    const std::optional<SurveyOptions> survey = take_survey_flags(flags);
    const MeasureOptions options = parse_measure_flags(flags);
    if (survey) return mpi ? survey_mpi(*survey, options) : survey_nccl(*survey, options);
    return mpi ? measure_mpi(options, std::cout) : measure_nccl(options, std::cout);
  } catch (const std::exception& error) {
    const lambcast::Complaint complaint = lambcast::complaint_of(error);
    // A wrong flag is wrong for every process of a launch, so only the first one reports it. mpirun
    // ends all processes once one has failed, so the others leave the first one time for that.
    if (first || complaint.code != lambcast::Exit::usage)
      std::fprintf(stderr, "lambcast: %s\n", complaint.text.c_str());
    else
      std::this_thread::sleep_for(std::chrono::seconds(1));
    return static_cast<int>(complaint.code);
  }
}
