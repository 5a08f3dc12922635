#include "validate/measure/measure.h"

namespace lambcast::validate {

int measure_mpi(const MeasureOptions&, std::ostream&) {
  throw Error(Exit::missing,
              "this lambcast was built without MPI: install an MPI (Debian: libopenmpi-dev) and "
              "build again to measure with --backend mpi");
}

}  // namespace lambcast::validate
