#include "sim/base/csv.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "sim/base/csv_reader.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("csv: fields survive a round trip") {
  const csv::Table table =
      csv::parse("# source: here\na,\"b,c\"\n1.5,\"x \"\"y\"\"\nz\"\n", "t.csv");
  CHECK(table.comments.size() == 1);
  CHECK(table.header == std::vector<std::string>{"a", "b,c"});
  CHECK(table.number(0, "a") == 1.5);
  CHECK(table.text(0, "b,c") == "x \"y\"\nz");
  CHECK(csv::row({"1.5", "x \"y\"\nz"}) == "1.5,\"x \"\"y\"\"\nz\"");
  CHECK(csv::number(0.1) == "0.1");
  CHECK(csv::number(std::nan("")).empty());
  // Fields written one by one equal those written from a list, also for whole numbers.
  for (const double value : {0.0, -0.0, 0.1, 1.0, -7.0, 680e6, 1.5e9, 999999999999999.0, 1e15, 1e16,
                             -3e17, 1e300, std::nan("")}) {
    INFO(value);
    CHECK(std::move(csv::Row().number(value)).line() == csv::number(value));
  }
  csv::Row row(16);
  row.text("a,b").whole(-3).empty(0).empty(2).flag(true).number(std::optional<double>());
  row.number(std::optional(2.5)).text("=x");
  CHECK(std::move(row).line() == csv::row({"a,b", "-3", "", "", "true", "", "2.5", "=x"}));
}

TEST_CASE("csv: a text that spreadsheets run as a formula is guarded, and reads back as it was") {
  CHECK(csv::field("=cmd|'/c calc'!A1") == "\"'=cmd|'/c calc'!A1\"");
  CHECK(csv::row({"+1 apart", "-x", "@sum", "\ttab"}) ==
        "\"'+1 apart\",\"'-x\",\"'@sum\",\"'\ttab\"");
  // Numbers and other names are written unchanged.
  for (const char* plain : {"-1.5", "-1e-300", "-inf", "a=b", "'it", "'", "-"}) {
    INFO(plain);
    CHECK(csv::field(plain) == plain);
  }
  const std::vector<std::string> texts = {"=1+1", "'=1+1", "''=x", "'", "''", "'-5",   "-5",
                                          "-",    "@a,b",  "\t",   "",  "x",  "=\"\"", "'a"};
  const csv::Table table = csv::parse(
      csv::row(std::vector<std::string>(texts.size(), "h")) + "\n" + csv::row(texts), "t.csv");
  CHECK(table.rows.at(0) == texts);
}

TEST_CASE("csv: a file is read record by record, with any content at the ends of its chunks") {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("lambcast_csv_{}", getpid());
  std::string expected;
  {
    std::ofstream out(path, std::ios::binary);
    out << "a,b\r\n\n";
    // Records of all lengths around the chunk of 256 KiB, some with line ends and quotes in fields.
    for (int i = 0; i < 60; ++i) {
      const std::string text(static_cast<std::size_t>(9000 + 7 * i), 'x');
      out << csv::row({text, fmt::format("{}\n\"{}\"", i, i)}) << (i % 2 == 0 ? "\r\n" : "\n");
      expected += fmt::format("{} {}\n\"{}\" {}\n", text.size(), i, i, 3 + 2 * i);
    }
  }
  csv::Reader reader = csv::Reader::of_file(path);
  std::string read;
  while (reader.next())
    read += fmt::format("{} {} {}\n", reader.text(0).size(), reader.text(reader.column("b")),
                        reader.line());
  CHECK(read == expected);
  std::filesystem::remove(path);
}

// A line with a line end is split in place; the last one, without a line end, is copied.
TEST_CASE("csv: a line reads the same with and without its end") {
  for (const std::string line :
       {"a,b", ",", "a,", ",b", R"("a,b",c)", R"(c,"a,b")", R"("","")", R"("a""b",c)", R"("ab"c,d)",
        R"(ab"c,d)", R"(ab"c,"d")", R"("a"",b",c)", "'=1+1,'a", "\"'=1+1\",''=x", "a\rb,c", "a,b\r",
        "\"a\nb\",c", "\"a\r\nb\",c", "c,\"a\nb\"\r"}) {
    INFO(line);
    const csv::Table put_together = csv::parse("h,i\n" + line, "t.csv");
    const csv::Table split = csv::parse("h,i\n" + line + "\nx,y\n", "t.csv");
    REQUIRE(put_together.rows.size() == 1);
    CHECK(split.rows == std::vector<std::vector<std::string>>{put_together.rows[0], {"x", "y"}});
    CHECK(split.lines[1] == 3 + std::count(line.begin(), line.end(), '\n'));
  }
  for (const char* line : {"a", "a,b,c", R"("a,b)", R"("a",b,c)"}) {
    INFO(line);
    CHECK_THROWS_WITH(csv::parse(std::string("h,i\n") + line + "\n", "t.csv"),
                      Contains("t.csv:2: "));
  }
  CHECK(csv::parse("h\n\"\"\nx\n\n", "t.csv").rows.size() == 1);
}

TEST_CASE("csv: the text of several fields equals these fields, or is empty") {
  csv::Reader reader = csv::Reader::of_text(
      "a,b,c,d\n1,2,,4\n1,2,\"x,y\",4\n1,\"2\",3,4\n1,'=2,3,4\n1,\"2\"\"\",3,4\n1,2,3,4\n",
      "t.csv");
  std::vector<std::string> said;
  while (reader.next()) {
    CHECK(reader.stretch(0, 3).empty());
    said.emplace_back(reader.stretch(1, 2));
  }
  // The text is empty for the last row too: a row at the end of the file is copied.
  CHECK(said == std::vector<std::string>{"2,", "2,\"x,y", "", "", "", ""});
}

TEST_CASE("csv: texts that are no table are refused before they exhaust memory or time") {
  CHECK_THROWS_WITH(csv::Reader::of_file("/dev/zero"),
                    Contains("/dev/zero: cannot be read: it is not a regular"));
  CHECK_THROWS_WITH(csv::Reader::of_file(std::filesystem::temp_directory_path()),
                    Contains("not a regular file"));
  CHECK_THROWS_WITH(csv::Reader::of_file("/absent.csv"), Contains("/absent.csv: cannot be read"));
  const std::filesystem::path pipe =
      std::filesystem::temp_directory_path() / fmt::format("lambcast_csv_pipe_{}", getpid());
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(csv::Reader::of_file(pipe), Contains("not a regular file"));
  std::filesystem::remove(pipe);
  const std::string endless(csv::Reader::max_record_bytes + 1, 'x');
  CHECK_THROWS_WITH(csv::parse("a\n" + endless, "t.csv"), Contains("t.csv:2: a record is longer"));
  CHECK_THROWS_WITH(csv::parse("a\n\"" + endless, "t.csv"), Contains("a record is longer"));
  CHECK_THROWS_WITH(csv::parse("#" + endless, "t.csv"), Contains("a line is longer"));
  CHECK_THROWS_WITH(csv::parse(std::string(2 * endless.size(), ','), "t.csv"), Contains("longer"));
}

TEST_CASE("csv: an error in a file names the line") {
  CHECK_THROWS_WITH(csv::parse("a,b\n1\n", "t.csv"), Contains("t.csv:2: has 1 fields"));
  CHECK_THROWS_WITH(csv::parse("a,b\n1,\"2\n", "t.csv"), Contains("never closed"));
  CHECK_THROWS_WITH(csv::parse("", "t.csv"), Contains("no header"));
  const csv::Table table = csv::parse("a\n1x\n", "t.csv");
  CHECK_THROWS_WITH(table.number(0, "a"), Contains("t.csv:2: a: '1x' is not a finite number"));
  CHECK_THROWS_WITH(table.number(0, "c"), Contains("has no column 'c'; its columns: a"));
}

}  // namespace
}  // namespace lambcast
