// Our own tables of measured collectives.
#include "sim/base/fuzz_target.h"
#include "validate/measurement.h"

FUZZ_TARGET(measurement, text) {
  using namespace lambcast::validate;
  write_measurement_csv(read_measurement_csv(text, "measured.csv"));
}
