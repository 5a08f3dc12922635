#include "models/megatron/vocabulary.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace lambcast::megatron {
namespace {

struct Known {
  std::string_view part;  // part of a name in lower case
  Vocabulary vocabulary;
};

// Source: Megatron-LM, training/arguments.py (--tokenizer-type); len(tokenizer) of the models on
// Hugging Face. The first match is used.
constexpr std::array<Vocabulary, 4> types{{{50257, "GPT2BPETokenizer"},
                                           {30522, "BertWordPieceLowerCase"},
                                           {28996, "BertWordPieceCase"},
                                           {32000, "Llama2Tokenizer"}}};

constexpr std::array<Known, 17> names{{{"mt5-", {250100, "mT5"}},
                                       {"flan-t5", {32100, "T5"}},
                                       {"t5-", {32100, "T5"}},
                                       {"gpt2", {50257, "GPT-2"}},
                                       {"gpt-neox", {50277, "GPT-NeoX"}},
                                       {"pythia", {50277, "GPT-NeoX"}},
                                       {"bert-large-uncased", {30522, "BERT uncased"}},
                                       {"bert-base-uncased", {30522, "BERT uncased"}},
                                       {"bert-large-cased", {28996, "BERT cased"}},
                                       {"bert-base-cased", {28996, "BERT cased"}},
                                       {"llama-3", {128256, "Llama 3"}},
                                       {"llama3", {128256, "Llama 3"}},
                                       {"llama-2", {32000, "Llama 2"}},
                                       {"llama2", {32000, "Llama 2"}},
                                       {"llama-7b", {32000, "Llama"}},
                                       {"mixtral", {32000, "Mistral"}},
                                       {"bigscience/tokenizer", {250680, "BLOOM"}}}};

}  // namespace

std::optional<Vocabulary> vocabulary_of_type(std::string_view type) {
  const auto found = std::ranges::find(types, type, &Vocabulary::tokenizer);
  return found == types.end() ? std::nullopt : std::optional(*found);
}

std::optional<Vocabulary> vocabulary_of_name(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto fits = [&](const Known& known) {
    const std::size_t at = text.find(known.part);
    return at != text.npos &&
           (at == 0 || std::isalnum(static_cast<unsigned char>(text[at - 1])) == 0);
  };
  const auto found = std::ranges::find_if(names, fits);
  return found == names.end() ? std::nullopt : std::optional(found->vocabulary);
}

}  // namespace lambcast::megatron
