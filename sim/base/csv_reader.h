// Reads a CSV file record by record, in memory that does not grow with the file: a sweep writes
// gigabytes. The rules are those of csv.h; csv::parse applies this reader to a whole text.
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
  // Limit of a record. A longer record means a file without line ends, or a quote that is never
  // closed.
  static constexpr std::size_t max_record_bytes = std::size_t{1} << 20;

  // Throws Error (usage) naming the file if it cannot be read, has no header row, or is no regular
  // file (reading a pipe or a device might never end).
  static Reader of_file(const std::filesystem::path& path);
  // `text` must outlive the reader. Messages call it `name`.
  static Reader of_text(std::string_view text, std::string name);

  Reader(Reader&& other) noexcept;
  Reader& operator=(Reader&&) = delete;
  ~Reader();

  const std::string& name() const { return name_; }
  // Size of the file or text in bytes. Each field takes at least one byte, for its comma or line
  // end; only the last field may take none.
  std::size_t bytes() const { return bytes_; }
  const std::vector<std::string>& header() const { return header_; }
  // Lines that start with '#' before the header.
  const std::vector<std::string>& comments() const { return comments_; }

  // Both return the index of a column. If it is absent, find() returns nothing and column() throws
  // Error naming the file.
  std::optional<std::size_t> find(std::string_view title) const;
  std::size_t column(std::string_view title) const;

  // Moves to the next row; returns false after the last one. Throws Error (usage) naming file and
  // line for a ragged row, an unclosed quote, or a record longer than max_record_bytes.
  bool next();
  // Returns a field of the current row, valid until the next call of next(). line() is the line on
  // which the row begins.
  std::string_view text(std::size_t column) const { return fields_.at(column); }
  // Returns the row's text from field `first` to field `last`. Rows with equal texts have equal
  // fields, so many fields are compared at once. The text is empty if read_record() read the row,
  // if `first` is the first column, or if that field has quotes or a guard.
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
  int file_ = -1;             // -1 if a text is read
  std::string chunk_;         // bytes of the file read last
  std::string_view window_;   // unread part of `chunk_` or of the whole text
  std::size_t position_ = 0;  // position in the window
  std::vector<std::string> header_, comments_;
  std::vector<std::string_view> fields_;  // fields of the row, in the window or in `record_`
  bool in_window_ = false;
  std::string record_;             // unquoted fields of the row, if copied by read_record()
  std::vector<std::size_t> ends_;  // ends of the fields in `record_`
  int line_ = 1, next_line_ = 1;
};

}  // namespace lambcast::csv
