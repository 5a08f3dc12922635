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
  hello = 'h',    // other rank: its host
  plan = 'p',     // rank 0: the sweep to compute
  chunk = 'c',    // rank 0: points to compute
  rows = 'r',     // other rank: rows of its chunks, in any order
  failure = 'f',  // other rank: why it cannot continue
  alive = 'a',    // any rank: still running
  end = 'e',      // rank 0: end with this exit code
  bye = 'b',      // other rank: its last message
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

// Reads the values of a SweepMessage in the order of writing. Throws InternalError for bytes that
// no SweepMessage writes.
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
