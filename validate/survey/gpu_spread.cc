#include "validate/survey/gpu_spread.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/device/device.h"
#include "models/device/timed_products.h"
#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/base/table.h"

namespace lambcast {
namespace {

namespace fs = std::filesystem;
using Logarithms = std::map<std::string, double>;  // logarithms of times, by the kernel timed

struct Profile {
  std::string file, gpu;
  Logarithms products, kernels;
};

Profile read_profile(const fs::path& path) {
  const std::string file = path.string(), text = read_file(file);
  const Device device = load_device(Table::parse(text, file), file, {});
  Profile profile{path.filename().string(), device.name, {}, {}};
  for (const TimedProducts& of_format : decode_products(Table::parse(text, file), {}))
    for (const TimedProduct& product : of_format.products)
      profile
          .products[fmt::format("{} {} {} {}", of_format.format, product.m, product.n, product.k)] =
          std::log(product.time_us);
  for (const KernelCurve& kernel : device.kernels)
    for (std::size_t i = 0; i < kernel.elements.size(); ++i)
      profile.kernels[fmt::format("{} {}", kernel.name, kernel.elements[i])] =
          std::log(kernel.time_us[i]);
  return profile;
}

std::vector<Profile> profiles_in(const fs::path& folder) {
  std::vector<Profile> profiles;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none))
    if (entry.path().extension() == ".toml") profiles.push_back(read_profile(entry.path()));
  std::ranges::sort(profiles, {}, &Profile::file);
  for (const Profile& profile : profiles)
    if (profile.gpu != profiles.front().gpu)
      fail_input({profile.file, 0, "name"},
                 fmt::format("is '{}', and {} is of '{}': the spread is one of equal GPUs",
                             profile.gpu, profiles.front().file, profiles.front().gpu),
                 "a survey of one kind of GPU at a time");
  return profiles;
}

// Returns the keys that every profile contains.
std::vector<std::string> shared_keys(const std::vector<Profile>& profiles,
                                     Logarithms Profile::*timed) {
  std::vector<std::string> keys;
  for (const auto& entry : profiles.front().*timed) {
    const auto has = [&](const Profile& of) { return (of.*timed).contains(entry.first); };
    if (std::ranges::all_of(profiles, has)) keys.push_back(entry.first);
  }
  return keys;
}

}  // namespace

std::optional<GpuSpread> gpu_spread_of(const fs::path& folder) {
  const std::vector<Profile> profiles = profiles_in(folder);
  if (profiles.size() < 2) return std::nullopt;
  Logarithms Profile::*timed = &Profile::products;
  std::vector<std::string> keys = shared_keys(profiles, timed);
  if (keys.empty()) keys = shared_keys(profiles, timed = &Profile::kernels);
  if (keys.empty())
    throw Error(Exit::usage, fmt::format("the profiles in {} have no product or kernel in common; "
                                         "try: profiles of one release of lambcast",
                                         folder.string()));
  std::vector<double> off;
  double mean = 0;
  for (const Profile& profile : profiles) {
    double sum = 0;
    for (const std::string& key : keys) sum += (profile.*timed).at(key);
    off.push_back(sum / static_cast<double>(keys.size()));
    mean += off.back() / static_cast<double>(profiles.size());
  }
  double squares = 0;
  for (double& x : off) x -= mean, squares += x * x;
  const auto slowest = std::ranges::max_element(off) - off.begin();
  return GpuSpread{std::sqrt(squares / static_cast<double>(profiles.size() - 1)),
                   static_cast<int>(profiles.size()), static_cast<int>(keys.size()),
                   profiles[static_cast<std::size_t>(slowest)].file,
                   off[static_cast<std::size_t>(slowest)]};
}

std::string gpu_spread_sentence(const GpuSpread& spread) {
  return fmt::format(
      "Equal GPUs differ by {:.1f} % (standard deviation over {} GPUs, {} timings each). The "
      "slowest, "
      "{}, takes {:.1f} % longer than their mean; every step waits for it.",
      100 * spread.spread, spread.gpus, spread.timed, spread.slowest,
      100 * std::expm1(spread.slowest_off));
}

Sourced<double> as_measured(const GpuSpread& spread) {
  return {spread.spread,
          {Kind::measured, fmt::format("lambcast survey --profile, {} GPUs", spread.gpus)}};
}

}  // namespace lambcast
