#include "models/parallel/activation_offload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace lambcast::parallel {
namespace {

template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && last == end && number > 0;
}

}  // namespace

const std::vector<std::string>& offload_module_names() {
  static const std::vector<std::string> names{"attn_norm", "qkv_linear", "core_attn", "attn_proj",
                                              "mlp_norm",  "expert_fc1", "moe_act"};
  return names;
}

ActivationOffload parse_activation_offload(std::string_view text, const Where& where) {
  ActivationOffload offload;
  if (text == "none") return offload;
  if (text == "checkpoints") {
    offload.checkpoints = true;
    return offload;
  }
  const auto refuse = [&](std::string_view part) {
    fail_input(where, fmt::format("'{}' names no activations", part),
               fmt::format("none, checkpoints, blocks:N, or MODULE+MODULE:SHARE such as "
                           "core_attn+attn_proj:0.5; modules: {}",
                           fmt::join(offload_module_names(), ", ")));
  };
  const std::size_t colon = text.find(':');
  const std::string_view number = colon == text.npos ? "1" : text.substr(colon + 1);
  if (text.starts_with("blocks:")) {
    if (!read_number(number, offload.blocks)) refuse(text);
    return offload;
  }
  if (!read_number(number, offload.share) || offload.share > 1) refuse(text);
  std::string_view rest = text.substr(0, colon);
  while (true) {
    const std::string_view name = rest.substr(0, rest.find('+'));
    const auto found = std::ranges::find(offload_module_names(), name);
    if (found == offload_module_names().end()) refuse(name);
    offload.modules[static_cast<std::size_t>(found - offload_module_names().begin())] = true;
    if (name.size() == rest.size()) return offload;
    rest.remove_prefix(name.size() + 1);
  }
}

}  // namespace lambcast::parallel
