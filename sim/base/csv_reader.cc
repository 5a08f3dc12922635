#include "sim/base/csv_reader.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "sim/base/csv.h"
#include "sim/base/error.h"

namespace lambcast::csv {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{1} << 18;

// Table of the bytes that have a meaning outside quotes.
constexpr std::array<bool, 256> special = [] {
  std::array<bool, 256> found{};
  for (const char c : {',', '"', '\n', '\r'}) found[static_cast<unsigned char>(c)] = true;
  return found;
}();

std::size_t find_special(std::string_view text, std::size_t from) {
  while (from < text.size() && !special[static_cast<unsigned char>(text[from])]) ++from;
  return from;
}

// Bit mask of the commas and quotes among the next `bytes` bytes of a line. Each byte has `each`
// bits in the mask; the highest of them is set for a comma or quote.
struct Marks {
#ifdef __SSE2__
  static constexpr std::size_t bytes = 16, each = 1;
  static std::uint64_t of(const char* text) {
    const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text));
    const auto are = [&](char c) { return _mm_cmpeq_epi8(all, _mm_set1_epi8(c)); };
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(are(','), are('"'))));
  }
#else
  static constexpr std::size_t bytes = 8, each = 8;
  static std::uint64_t of(const char* text) {
    constexpr std::uint64_t ones = 0x0101010101010101, low = 0x7f7f7f7f7f7f7f7f;
    std::uint64_t all;
    std::memcpy(&all, text, sizeof all);
    if constexpr (std::endian::native == std::endian::big) all = __builtin_bswap64(all);
    const auto are = [&](char c) {
      const std::uint64_t other = all ^ (ones * static_cast<unsigned char>(c));  // 0 for bytes of c
      return ~(((other & low) + low) | other | low);
    };
    return are(',') | are('"');
  }
#endif
  // Returns the mask of the first `count` characters only.
  static std::uint64_t of(const char* text, std::size_t count) {
    const std::uint64_t found = of(text);
    return count < bytes ? found & ((std::uint64_t{1} << (each * count)) - 1) : found;
  }
};

}  // namespace

Reader Reader::of_file(const std::filesystem::path& path) {
  Reader reader(path.string());
  // Without O_NONBLOCK, opening a pipe waits for a writer.
  reader.file_ = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  struct stat status {};
  if (reader.file_ < 0 || fstat(reader.file_, &status) != 0)
    fail_input({reader.name_, 0, {}}, "cannot be read");
  if (!S_ISREG(status.st_mode))
    fail_input({reader.name_, 0, {}}, "cannot be read: it is not a regular file");
  reader.bytes_ = static_cast<std::size_t>(status.st_size);
  reader.read_header();
  return reader;
}

Reader Reader::of_text(std::string_view text, std::string name) {
  Reader reader(std::move(name));
  reader.window_ = text;
  reader.bytes_ = text.size();
  reader.read_header();
  return reader;
}

// The window may view the chunk. A moved long string keeps its memory, so the view stays valid.
Reader::Reader(Reader&& other) noexcept
    : name_(std::move(other.name_)),
      bytes_(other.bytes_),
      file_(std::exchange(other.file_, -1)),
      chunk_(std::move(other.chunk_)),
      window_(other.window_),
      position_(other.position_),
      header_(std::move(other.header_)),
      comments_(std::move(other.comments_)),
      fields_(std::move(other.fields_)),
      in_window_(other.in_window_),
      record_(std::move(other.record_)),
      ends_(std::move(other.ends_)),
      line_(other.line_),
      next_line_(other.next_line_) {}

Reader::~Reader() {
  if (file_ >= 0) close(file_);
}

std::optional<std::size_t> Reader::find(std::string_view title) const {
  const auto found = std::find(header_.begin(), header_.end(), title);
  if (found == header_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header_.begin());
}

std::size_t Reader::column(std::string_view title) const {
  if (const auto found = find(title)) return *found;
  fail_input({name_, 0, {}},
             fmt::format("has no column '{}'; its columns: {}", title, fmt::join(header_, ", ")));
}

std::string_view Reader::stretch(std::size_t first, std::size_t last) const {
  const std::string_view at_end = text(last);
  const char *const begin = text(first).data(), *const end = at_end.data() + at_end.size();
  if (!in_window_ || first == 0 || begin[-1] != ',') return {};
  return {begin, end};
}

void Reader::read_header() {
  while (!at_end() && (window_[position_] == '#' || window_[position_] == '\n')) {
    if (window_[position_] == '#') {
      read_comment();
    } else {
      ++position_, ++next_line_;
    }
  }
  if (!read_record()) fail_input({name_, 0, {}}, "has no header row");
  header_.assign(fields_.begin(), fields_.end());
}

bool Reader::next() {
  in_window_ = split_line();
  if (in_window_) return true;
  if (!read_record()) return false;
  if (fields_.size() != header_.size())
    fail_input({name_, line_, {}}, fmt::format("has {} fields where the header has {}",
                                               fields_.size(), header_.size()));
  return true;
}

// Splits a row in place if it is one line, lies whole in the window and needs no unquoting, as most
// rows do. Returns false for all others, which read_record() handles.
bool Reader::split_line() {
  const std::string_view rest = window_.substr(position_);
  const std::size_t length = rest.find('\n');
  if (length == std::string_view::npos || length > max_record_bytes) return false;
  if (rest.size() < length + Marks::bytes) return false;  // read at once by Marks::of
  std::string_view line = rest.substr(0, length);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.find('\r') != std::string_view::npos || !split(line)) return false;
  if (fields_.size() == 1 && fields_[0].empty()) return false;
  position_ += length + 1;
  line_ = next_line_++;
  return true;
}

// Splits a line without copying. Returns false if the number of fields differs from the header's,
// or if a field has a quote inside or after its quotes. Most fields are empty or numbers, so many
// bytes are examined at once: a search per comma would take longer.
bool Reader::split(std::string_view line) {
  fields_.resize(header_.size());
  std::string_view* field = fields_.data();
  const std::string_view* const last = field + fields_.size() - 1;
  const char *begin = line.data(), *const end = begin + line.size();
  int quotes = 0;  // number of quotes in the field that begins at `begin`
  const auto end_field = [&](const char* at) {
    *field = {begin + quotes / 2, at - quotes / 2};
    if (field->starts_with('\'') && is_guarded(*field)) field->remove_prefix(1);
  };
  for (std::size_t from = 0; from < line.size(); from += Marks::bytes)
    for (auto found = Marks::of(line.data() + from, line.size() - from); found != 0;
         found &= found - 1) {
      const char* const at =
          line.data() + from + static_cast<std::size_t>(std::countr_zero(found)) / Marks::each;
      if (*at == ',') {
        if (quotes == 1) continue;
        if (field == last) return false;
        end_field(at);
        ++field;
        begin = at + 1;
        quotes = 0;
      } else if (at == begin) {
        quotes = 1;
      } else if (quotes == 1) {
        if (at + 1 != end && at[1] != ',') return false;
        quotes = 2;
      }
    }
  if (field != last || quotes == 1) return false;
  end_field(end);
  return true;
}

// Reads one record into `record_`. Empty lines are skipped.
bool Reader::read_record() {
  do {
    if (at_end()) return false;
    record_.clear();
    ends_.clear();
    line_ = next_line_;
    bool whole = false;
    while (!whole && !at_end()) {
      const std::size_t stop = find_special(window_, position_);
      append(window_.substr(position_, stop - position_));
      position_ = stop;
      if (stop == window_.size()) continue;
      const char c = window_[position_++];
      const std::size_t field = ends_.empty() ? 0 : ends_.back();
      if (c == ',') end_field();
      if (c == '"' && record_.size() == field) {
        read_quoted();
      } else if (c == '"') {
        append("\"");
      }
      whole = c == '\n';
    }
    ++next_line_;
    end_field();
  } while (ends_.size() == 1 && record_.empty());
  fields_.clear();
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    fields_.push_back(std::string_view(record_).substr(begin, ends_[i] - begin));
  }
  return true;
}

// Reads a quoted field, from the character after the opening quote to the closing quote.
void Reader::read_quoted() {
  while (!at_end()) {
    const std::size_t stop = std::min(window_.find('"', position_), window_.size());
    const std::string_view part = window_.substr(position_, stop - position_);
    next_line_ += static_cast<int>(std::count(part.begin(), part.end(), '\n'));
    append(part);
    position_ = stop;
    if (stop == window_.size()) continue;
    ++position_;
    if (at_end() || window_[position_] != '"') return;
    ++position_;
    append("\"");
  }
  fail_input({name_, line_, {}}, "a quoted field is never closed");
}

void Reader::read_comment() {
  std::string& comment = comments_.emplace_back();
  while (!at_end() && window_[position_] != '\n') {
    const std::size_t stop = std::min(window_.find('\n', position_), window_.size());
    comment += window_.substr(position_, stop - position_);
    position_ = stop;
    if (comment.size() > max_record_bytes)
      fail_input({name_, next_line_, {}}, "a line is longer than 1 MiB");
  }
  if (!at_end()) ++position_;
  ++next_line_;
}

bool Reader::refill() {
  if (file_ < 0) return false;
  chunk_.resize(chunk_bytes);
  ssize_t count = 0;
  do count = read(file_, chunk_.data(), chunk_bytes);
  while (count < 0 && errno == EINTR);
  if (count < 0) fail_input({name_, 0, {}}, "cannot be read");
  window_ = std::string_view(chunk_).substr(0, static_cast<std::size_t>(count));
  position_ = 0;
  return count > 0;
}

void Reader::append(std::string_view bytes) {
  record_ += bytes;
  if (record_.size() > max_record_bytes || ends_.size() > max_record_bytes)
    fail_input({name_, line_, {}}, "a record is longer than 1 MiB");
}

// Ends a field and removes the apostrophe that csv::field() adds as a guard against spreadsheets.
void Reader::end_field() {
  const std::size_t begin = ends_.empty() ? 0 : ends_.back();
  if (begin < record_.size() && record_[begin] == '\'' &&
      is_guarded(std::string_view(record_).substr(begin)))
    record_.erase(begin, 1);
  ends_.push_back(record_.size());
}

}  // namespace lambcast::csv
