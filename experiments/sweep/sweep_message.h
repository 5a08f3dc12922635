// Messages between the processes of a sweep (sweep_ranks.h), as bytes: strings of any bytes, each
// preceded by its length.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/sweep/sweep_threads.h"

namespace lambcast {

enum class SweepWord : char {
  hello = 'h',    // of another rank: its host
  plan = 'p',     // of rank 0: what is computed
  chunk = 'c',    // of rank 0: points to compute
  rows = 'r',     // of another: rows of its chunks, in any order
  failure = 'f',  // of another: why it cannot go on
  alive = 'a',    // of any: nothing new
  end = 'e',      // of rank 0: it is over, with an exit code
  bye = 'b',      // of another, its last word
};

class SweepMessage {
 public:
  explicit SweepMessage(SweepWord word) : bytes_(1, static_cast<char>(word)) {}

  SweepMessage& add(std::string_view text);
  SweepMessage& add(std::uint64_t number);

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads what a SweepMessage holds, in its order. Throws InternalError for what no SweepMessage
// writes.
class SweepMessageReader {
 public:
  explicit SweepMessageReader(std::string_view bytes);

  SweepWord word() const { return word_; }
  bool empty() const { return rest_.empty(); }
  std::string_view text();
  std::uint64_t number();

 private:
  SweepWord word_;
  std::string_view rest_;
};

struct NumberedRow {
  std::size_t point = 0;
  bool last_of_chunk = false;
  SweepRow row = {};
};

void add_row(SweepMessage& message, const NumberedRow& row);
NumberedRow read_row(SweepMessageReader& message);

}  // namespace lambcast
