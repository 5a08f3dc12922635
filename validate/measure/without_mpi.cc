#include "validate/measure/measure.h"
#include "validate/measure/survey.h"

namespace lambcast::validate {

namespace {

[[noreturn]] void fail_without_mpi() {
  throw Error(Exit::missing,
              "this lambcast was built without MPI: install an MPI (Debian: libopenmpi-dev) and "
              "build again to measure with --backend mpi");
}

}  // namespace

int measure_mpi(const MeasureOptions&, std::ostream&) { fail_without_mpi(); }

int survey_mpi(const SurveyOptions&, const MeasureOptions&) { fail_without_mpi(); }

}  // namespace lambcast::validate
