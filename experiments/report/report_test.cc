#include "experiments/report/report.h"

#include <catch2/catch.hpp>
#include "experiments/report/synthetic_sweep.h"
using namespace lambcast::report;
TEST_CASE("a whole study becomes a report") {
  const std::string dir = synthetic_folder("study", synthetic_study());
  const Paths paths = write_report(dir);
  CHECK(paths.messages.empty());
}
