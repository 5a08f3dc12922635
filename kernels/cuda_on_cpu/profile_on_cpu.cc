// profile_on_cpu FILE: writes the profile of the emulated device, for tests of code that reads
// profiles. Its times are those of this CPU.
#include <fmt/format.h>

#include <fstream>

#include "kernels/profile.h"
#include "sim/base/error.h"

int main(int argc, char** argv) {
  using namespace lambcast;
  if (argc != 2) return static_cast<int>(Exit::usage);
  try {
    ProfileOptions options;
    options.min_bytes = 4 << 10;
    options.max_bytes = 64 << 10;
    options.iterations = 3;
    options.warmup = 1;
    std::ofstream file(argv[1]);
    file << profile_device(options);
    return file.flush() ? 0 : static_cast<int>(Exit::failure);
  } catch (const Error& error) {
    fmt::print(stderr, "profile_on_cpu: {}\n", error.what());
    return static_cast<int>(error.code());
  }
}
