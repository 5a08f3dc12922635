// Vocabulary sizes of tokenizers that a Megatron run names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lambcast::megatron {

struct Vocabulary {
  std::int64_t words = 0;
  std::string_view tokenizer;
};

// Return the vocabulary of a tokenizer type, or of a model or file with a known name ("t5-small",
// "llama-7b/tokenizer.model"); nothing for others.
std::optional<Vocabulary> vocabulary_of_type(std::string_view type);
std::optional<Vocabulary> vocabulary_of_name(std::string_view name);

}  // namespace lambcast::megatron
