// libFuzzer target (clang, -DLAMBCAST_FUZZ=ON): only Error may escape from reading a configuration.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "models/deepspeed/rules.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lambcast::deepspeed;
  try {
    const DeepSpeedConfig config =
        parse_config(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.json");
    check_config(config);
    check_run(config, 1000);
    if (config.curriculum) phases(*config.curriculum, 1000);
    if (config.elasticity) elastic_batch(*config.elasticity, 8);
    resolve_batch(config.batch, 8);
  } catch (const lambcast::Error&) {
  }
  return 0;
}
