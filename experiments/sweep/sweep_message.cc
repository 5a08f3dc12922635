#include "experiments/sweep/sweep_message.h"

#include <charconv>

#include "sim/base/check.h"

namespace lambcast {

SweepMessage& SweepMessage::add(std::string_view text) {
  bytes_ += fmt::format("{}:", text.size());
  bytes_ += text;
  return *this;
}

SweepMessage& SweepMessage::add(std::uint64_t number) { return add(fmt::format("{}", number)); }

SweepMessageReader::SweepMessageReader(std::string_view bytes) : word_(), rest_(bytes) {
  LAMBCAST_CHECK(!bytes.empty(), "a message without a word");
  word_ = static_cast<SweepWord>(bytes.front());
  rest_.remove_prefix(1);
}

std::string_view SweepMessageReader::text() {
  std::size_t size = 0;
  const char* const end = rest_.data() + rest_.size();
  const auto [colon, error] = std::from_chars(rest_.data(), end, size);
  LAMBCAST_CHECK(error == std::errc{} && colon != end && *colon == ':', "a word without length");
  rest_.remove_prefix(static_cast<std::size_t>(colon + 1 - rest_.data()));
  LAMBCAST_CHECK(size <= rest_.size(), "{} bytes of a word of {}", rest_.size(), size);
  const std::string_view text = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return text;
}

std::uint64_t SweepMessageReader::number() {
  const std::string_view digits = text();
  std::uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  LAMBCAST_CHECK(error == std::errc{} && stop == end, "'{}' is not a number", digits);
  return number;
}

void add_row(SweepMessage& message, const NumberedRow& row) {
  message.add(row.point).add(row.last_of_chunk ? 1 : 0).add(row.row.ok ? 1 : 0).add(row.row.text);
  message.add(row.row.findings.size());
  for (const Finding& finding : row.row.findings)
    message.add(static_cast<std::uint64_t>(finding.severity))
        .add(finding.code)
        .add(finding.message);
}

NumberedRow read_row(SweepMessageReader& message) {
  NumberedRow row;
  row.point = message.number();
  row.last_of_chunk = message.number() != 0;
  row.row.ok = message.number() != 0;
  row.row.text = message.text();
  for (std::uint64_t left = message.number(); left > 0; --left) {
    Finding finding;
    finding.severity = static_cast<Severity>(message.number());
    finding.code = message.text();
    finding.message = message.text();
    row.row.findings.push_back(std::move(finding));
  }
  return row;
}

}  // namespace lambcast
