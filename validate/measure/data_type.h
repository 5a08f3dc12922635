// Types of the elements that a collective moves, with the names of nccl-tests (-d).
#pragma once

#include <cstdint>
#include <string_view>

namespace lambcast::validate {

// half is IEEE binary16. Packed signs and 8-bit codes are sent as uint8.
enum class DataType { float32, half, bfloat16, uint8 };

inline constexpr DataType data_types[] = {DataType::float32, DataType::half, DataType::bfloat16,
                                          DataType::uint8};

std::string_view name_of(DataType type);  // "float", "half", "bfloat16", "uint8"
std::uint64_t bytes_of(DataType type);
constexpr bool is_sixteen_bit(DataType type) {
  return type == DataType::half || type == DataType::bfloat16;
}

// Write and read element i of a buffer. A value that the type cannot hold is rounded.
void store(DataType type, char* buffer, std::uint64_t i, float value);
float load(DataType type, const char* buffer, std::uint64_t i);

}  // namespace lambcast::validate
