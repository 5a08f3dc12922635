#include "kernels/nccl/saved_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace lambcast::cuda {

namespace {

constexpr std::string_view family = "lambcast state ";
constexpr int version = 1;

[[noreturn]] void refuse_state(const std::string& why) {
  throw Error(Exit::usage, "saved state: " + why);
}

// Returns an FNV-1a hash of the starts of all tensors.
std::uint64_t digest(const TensorLayout& tensors) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::size_t offset : tensors.offsets) {
    for (int shift = 0; shift < 64; shift += 8) {
      hash = (hash ^ (static_cast<std::uint64_t>(offset) >> shift & 0xff)) * 0x100000001b3u;
    }
  }
  return hash;
}

// Removes and returns the first line.
std::string_view line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view first = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return first;
}

}  // namespace

std::string head_of(const StateLayout& layout) {
  const TensorLayout& tensors = *layout.tensors;
  return fmt::format(
      "{}{}\n{}\nrank {} of {}\n{} tensors of {} elements, cut as {:016x}\n"
      "{} tensors that never freeze\npadding {}{}\n",
      family, version, layout.optimizer, layout.rank, layout.ranks, tensors.tensors(),
      tensors.elements(), digest(tensors), layout.never_freezing,
      layout.padding == Padding::counted ? "counted" : "excluded",
      layout.persistent_tail ? " and persistent" : "");
}

StateWriter::StateWriter(std::string_view head) { append(head.data(), head.size()); }

void StateWriter::append(const void* data, std::size_t bytes) {
  const auto* const from = static_cast<const std::byte*>(data);
  bytes_.insert(bytes_.end(), from, from + bytes);
}

StateReader::StateReader(std::span<const std::byte> state, std::string_view head,
                         std::size_t bytes) {
  std::string_view text(reinterpret_cast<const char*>(state.data()), state.size());
  if (!text.starts_with(family)) refuse_state("not one of this library");
  const std::size_t whole = head.size() + bytes;
  while (!head.empty()) {
    const std::string_view wanted = line(head), found = line(text);
    if (found == wanted) continue;
    // Text of another origin may contain any bytes.
    const bool printable =
        found.size() < 100 &&
        std::all_of(found.begin(), found.end(), [](char c) { return c >= ' ' && c <= '~'; });
    refuse_state(fmt::format("{}, here {} is wanted", printable ? found : "damaged", wanted));
  }
  if (state.size() != whole) {
    refuse_state(fmt::format("{} bytes, here {} are wanted", state.size(), whole));
  }
  rest_ = state.last(bytes);
}

void StateReader::take(void* data, std::size_t bytes) {
  if (bytes > 0) std::memcpy(data, rest_.data(), bytes);
  rest_ = rest_.subspan(bytes);
}

}  // namespace lambcast::cuda
