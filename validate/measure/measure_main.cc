// measure_mpi_program [flags]: what `lambcast measure --backend mpi` does, as a program of its
// own that mpirun can start; the tests and the emulated Ethernet use it.
#include <cstdio>
#include <iostream>

#include "validate/measure/measure.h"

int main(int argc, char** argv) {
  using namespace lambcast::validate;
  try {
    return measure_mpi(parse_measure_flags({argv + 1, argv + argc}), std::cout);
  } catch (const lambcast::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
}
