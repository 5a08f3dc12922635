// merge_runs FILE.csv...: merges separate runs of one measurement into one table on stdout.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "validate/measurement.h"

int main(int argc, char** argv) {
  using namespace lambcast;
  try {
    if (argc < 2) fail_input({}, "usage: merge_runs FILE.csv...");
    std::vector<validate::Measurement> runs;
    for (int i = 1; i < argc; ++i) {
      std::ifstream file(argv[i]);
      if (!file) fail_input({argv[i], 0, {}}, "cannot be read");
      std::ostringstream text;
      text << file.rdbuf();
      runs.push_back(validate::read_measurement_csv(text.str(), argv[i]));
    }
    std::cout << validate::write_measurement_csv(validate::merge_runs(runs));
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
}
