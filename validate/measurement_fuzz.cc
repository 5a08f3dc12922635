// Parses tables of measured collectives in the project's CSV.
#include "sim/base/fuzz_target.h"
#include "validate/measurement.h"

FUZZ_TARGET(measurement, text) {
  using namespace lambcast::validate;
  write_measurement_csv(read_measurement_csv(text, "measured.csv"));
}
