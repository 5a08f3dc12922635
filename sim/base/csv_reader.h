// Reads a CSV file record by record, in memory that does not grow with the file: a sweep leaves
// gigabytes. The rules are those of csv.h; csv::parse is this reader over a text, kept whole.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast::csv {

class Reader {
 public:
  // A longer record is no table of ours, but a file without line ends or a quote never closed.
  static constexpr std::size_t max_record_bytes = std::size_t{1} << 20;

  // Throws Error (usage) naming the file when it cannot be read or is no regular file (a pipe would
  // wait for ever, a device never end), or has no header row.
  static Reader of_file(const std::filesystem::path& path);
  // `text` must outlive the reader; messages call it `name`.
  static Reader of_text(std::string_view text, std::string name);

  Reader(Reader&& other) noexcept;
  Reader& operator=(Reader&&) = delete;
  ~Reader();

  const std::string& name() const { return name_; }
  // Size of the file or text. A field takes at least one byte, its comma or line end, except the
  // last.
  std::size_t bytes() const { return bytes_; }
  const std::vector<std::string>& header() const { return header_; }
  // Lines that start with '#' before the header.
  const std::vector<std::string>& comments() const { return comments_; }

  // Index of a column; `column` throws Error naming the file when it is absent.
  std::optional<std::size_t> find(std::string_view title) const;
  std::size_t column(std::string_view title) const;

  // Goes to the next row; false behind the last. Throws Error (usage) naming file and line for a
  // ragged row, an unclosed quote, or a record longer than max_record_bytes.
  bool next();
  // Returns a field of the current row, valid until the next call of next(). `line` is the line on
  // which the row begins.
  std::string_view text(std::size_t column) const { return fields_.at(column); }
  // Returns the row's text in the file from one column to another, so that rows can be compared at
  // once: if it is equal, so are the fields. Empty if the row had to be put together, or if the
  // first of the columns is that of the file, or has quotes or a guard.
  std::string_view stretch(std::size_t first, std::size_t last) const;
  int line() const { return line_; }

 private:
  explicit Reader(std::string name) : name_(std::move(name)) {}
  void read_header();
  bool split_line();
  bool split(std::string_view line);
  bool read_record();
  void read_quoted();
  void read_comment();
  bool refill();
  bool at_end() { return position_ == window_.size() && !refill(); }
  void append(std::string_view bytes);
  void end_field();

  std::string name_;
  std::size_t bytes_ = 0;
  int file_ = -1;             // none where a text is read
  std::string chunk_;         // of the file
  std::string_view window_;   // of `chunk_`, or the whole text
  std::size_t position_ = 0;  // in the window
  std::vector<std::string> header_, comments_;
  std::vector<std::string_view> fields_;  // of the row, in the window or in `record_`
  bool in_window_ = false;
  std::string record_;             // of a row that had to be put together: its fields
  std::vector<std::size_t> ends_;  // of the fields in `record_`
  int line_ = 1, next_line_ = 1;
};

}  // namespace lambcast::csv
