#include "validate/measure/data_type.h"

#include <cstring>

#include "kernels/reference/half.h"

namespace lambcast::validate {
namespace {

constexpr std::string_view names[] = {"float", "half", "bfloat16", "uint8"};
constexpr std::uint64_t bytes[] = {4, 2, 2, 1};

reference::HalfFormat format_of(DataType type) {
  return type == DataType::half ? reference::HalfFormat::fp16 : reference::HalfFormat::bf16;
}

}  // namespace

std::string_view name_of(DataType type) { return names[static_cast<std::size_t>(type)]; }
std::uint64_t bytes_of(DataType type) { return bytes[static_cast<std::size_t>(type)]; }

void store(DataType type, char* buffer, std::uint64_t i, float value) {
  const std::uint16_t half = reference::to_half(value, format_of(type));
  const auto byte = static_cast<std::uint8_t>(value);
  const void* const from = type == DataType::float32 ? static_cast<const void*>(&value)
                           : type == DataType::uint8 ? static_cast<const void*>(&byte)
                                                     : &half;
  std::memcpy(buffer + i * bytes_of(type), from, bytes_of(type));
}

float load(DataType type, const char* buffer, std::uint64_t i) {
  float value = 0;
  std::uint16_t half = 0;
  if (type == DataType::uint8) return static_cast<std::uint8_t>(buffer[i]);
  void* const to = type == DataType::float32 ? static_cast<void*>(&value) : &half;
  std::memcpy(to, buffer + i * bytes_of(type), bytes_of(type));
  return type == DataType::float32 ? value : reference::from_half(half, format_of(type));
}

}  // namespace lambcast::validate
