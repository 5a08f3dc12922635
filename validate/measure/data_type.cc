#include "validate/measure/data_type.h"

#include <cstring>

#include "kernels/reference/half.h"

namespace lambcast::validate {
namespace {

template <typename T>
void put(char* buffer, std::uint64_t i, T value) {
  std::memcpy(buffer + i * sizeof(T), &value, sizeof(T));
}

template <typename T>
T get(const char* buffer, std::uint64_t i) {
  T value{};
  std::memcpy(&value, buffer + i * sizeof(T), sizeof(T));
  return value;
}

reference::HalfFormat format_of(DataType type) {
  return type == DataType::half ? reference::HalfFormat::fp16 : reference::HalfFormat::bf16;
}

}  // namespace

std::string_view name_of(DataType type) {
  switch (type) {
    case DataType::half:
      return "half";
    case DataType::bfloat16:
      return "bfloat16";
    case DataType::uint8:
      return "uint8";
    case DataType::float32:
      break;
  }
  return "float";
}

std::uint64_t bytes_of(DataType type) {
  return type == DataType::float32 ? 4 : type == DataType::uint8 ? 1 : 2;
}

void store(DataType type, char* buffer, std::uint64_t i, float value) {
  if (type == DataType::float32)
    put(buffer, i, value);
  else if (type == DataType::uint8)
    put(buffer, i, static_cast<std::uint8_t>(value));
  else
    put(buffer, i, reference::to_half(value, format_of(type)));
}

float load(DataType type, const char* buffer, std::uint64_t i) {
  if (type == DataType::float32) return get<float>(buffer, i);
  if (type == DataType::uint8) return get<std::uint8_t>(buffer, i);
  return reference::from_half(get<std::uint16_t>(buffer, i), format_of(type));
}

}  // namespace lambcast::validate
