#include "kernels/profile.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "models/device/timed_products.h"
#include "sim/base/output_file.h"
#include "tools/commands.h"
#include "tools/size.h"

namespace lambcast {
namespace {

struct ProfileFlags {
  ProfileOptions profile;
  std::string begin, end, out;
  bool no_layers = false;
};

int profile_command(ProfileFlags options) {
  if (!options.begin.empty())
    options.profile.min_bytes = static_cast<std::size_t>(parse_size(options.begin, "-b"));
  if (!options.end.empty())
    options.profile.max_bytes = static_cast<std::size_t>(parse_size(options.end, "-e"));
  options.profile.layers = !options.no_layers;
  if (isatty(STDERR_FILENO) != 0)
    options.profile.progress = [](std::string_view line) { fmt::print(stderr, "{}\n", line); };
  std::string profile = profile_device(options.profile);
  const std::vector<std::string> errors = held_back_lines(profile);
  for (const std::string& line : errors) profile += fmt::format("# {}\n", line);
  if (options.out.empty() || options.out == "-") {
    fmt::print("{}", profile);
    return 0;
  }
  write_output(options.out, "-o", profile);
  fmt::print("device profile in {}; use it with simulate --device {}\n", options.out, options.out);
  for (const std::string& line : errors) fmt::print("{}\n", line);
  return 0;
}

}  // namespace

Command add_profile(CLI::App& app) {
  auto options = std::make_shared<ProfileFlags>();
  CLI::App* command =
      app.add_subcommand("profile", "time the CUDA kernels on this GPU and write a device profile");
  command
      ->add_option("-b", options->begin,
                   "smallest fp32 buffer in bytes (K, M, G: powers of 1024; default: 256K)")
      ->type_name("SIZE");
  command->add_option("-e", options->end, "largest fp32 buffer in bytes (default: 4G)")
      ->type_name("SIZE");
  command
      ->add_option("-f", options->profile.factor, "factor from one size to the next (default: 4)")
      ->type_name("FACTOR");
  command
      ->add_option("-n", options->profile.iterations,
                   "iterations that are timed at each size (default: 20)")
      ->type_name("N");
  command->add_option("-w", options->profile.warmup, "warm-up iterations before them (default: 5)")
      ->type_name("N");
  command->add_flag("--no-layers", options->no_layers, "leave out the transformer layers");
  command->add_option("-o,--out", options->out, "file for the profile (default: stdout)");
  command->footer(
      "Example\n  lambcast profile -o my-gpu.toml && lambcast simulate --device my-gpu.toml ...");
  return [options] { return profile_command(*options); };
}

}  // namespace lambcast
