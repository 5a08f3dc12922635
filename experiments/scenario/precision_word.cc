#include "experiments/scenario/precision_word.h"

namespace lambcast {

std::string PrecisionWord::word() const {
  return std::string(is_narrow() ? name_of(products) : name_of(weights));
}

std::span<const PrecisionWord> precisions() {
  static constexpr PrecisionWord table[] = {
      {DataType::fp16, MatrixFormat::half},   {DataType::bf16, MatrixFormat::half},
      {DataType::fp32, MatrixFormat::single}, {DataType::bf16, MatrixFormat::fp8},
      {DataType::bf16, MatrixFormat::mxfp8},  {DataType::bf16, MatrixFormat::nvfp4},
  };
  return table;
}

const std::vector<std::string>& precision_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all;
    for (const PrecisionWord& precision : precisions()) all.push_back(precision.word());
    return all;
  }();
  return words;
}

}  // namespace lambcast
