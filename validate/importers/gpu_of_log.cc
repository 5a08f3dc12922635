#include "validate/importers/gpu_of_log.h"

#include <algorithm>
#include <cctype>

namespace lambcast::validate {
namespace {

std::string in_capitals(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

}  // namespace

std::string other_gpu(const Measurement& measurement, std::string_view device) {
  const auto note =
      std::ranges::find(measurement.notes, "gpu", &std::pair<std::string, std::string>::first);
  const std::string model = in_capitals(device.substr(0, device.find('-')));
  if (note == measurement.notes.end() || model.empty()) return {};
  // A log of a "GH200" matches the device h200, since its name contains "H200". For a network the
  // two GPUs are the same.
  return in_capitals(note->second).find(model) == std::string::npos ? note->second : "";
}

}  // namespace lambcast::validate
