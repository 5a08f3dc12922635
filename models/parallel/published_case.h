// For tests: published rows, and the GPT that a row describes.
#pragma once

#include <string>

#include "models/shape/load.h"
#include "sim/base/csv.h"
#include "sim/base/file.h"

namespace lambcast::parallel {

inline csv::Table published(const std::string& name) {
  const std::string path = std::string(PUBLISHED_FOLDER) + "/" + name;
  return csv::parse(read_file(path), path);
}

// Returns a GPT with the row's hidden, layers and heads; ffn 4 h, dropout, scores kept.
inline ModelShape gpt_of(const csv::Table& table, std::size_t row, std::int64_t seq_len,
                         std::int64_t vocab) {
  const auto hidden = static_cast<std::int64_t>(table.number(row, "hidden"));
  return load_model("gpt3-175b",
                    std::vector<ModelOverride>{{"model.hidden", std::to_string(hidden)},
                                               {"model.ffn", std::to_string(4 * hidden)},
                                               {"model.layers", table.text(row, "layers")},
                                               {"model.heads", table.text(row, "heads")},
                                               {"model.max_seq_len", std::to_string(seq_len)},
                                               {"model.vocab", std::to_string(vocab)}});
}

inline int integer(const csv::Table& table, std::size_t row, const char* column) {
  return static_cast<int>(table.number(row, column));
}

}  // namespace lambcast::parallel
