#include "sim/base/table.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "sim/base/overrides.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

constexpr const char* text = R"(
name = "lab"
[nic]
count = 2
bandwidth = { value = "4.1 Gbit/s", kind = "published", source = "iperf" }
latency = "5 us"
[[rail]]
id = 1
)";

TEST_CASE("table: values carry their evidence") {
  const Table root = Table::parse(text, "c.toml");
  const Table nic = root.table("nic");
  const auto bandwidth = nic.get<Sourced<Bandwidth>>("bandwidth");
  CHECK(bandwidth.value.value() == Approx(4.1e9 / 8).epsilon(1e-15));
  CHECK(bandwidth.provenance.kind == Kind::published);
  CHECK(bandwidth.provenance.source == "iperf");
  const auto latency = nic.get<Sourced<Duration>>("latency");
  CHECK(latency.provenance.kind == Kind::assumed);
  CHECK(latency.provenance.source == "c.toml:6");
  CHECK(nic.integer("count", 1, 8) == 2);
  CHECK(root.get<std::string>("name") == "lab");
  CHECK(root.tables("rail").at(0).get<std::int64_t>("id") == 1);
  CHECK_FALSE(root.find<double>("absent").has_value());
  CHECK_NOTHROW(root.finish());
}

TEST_CASE("table: a name with control characters is refused, and the message is free of them") {
  const Table root =
      Table::parse("name = \"a\\u001b[31mb\"\nsource = \"\"\"one\r\n\ttwo\"\"\"\n", "c.toml");
  CHECK_THROWS_WITH(root.get<std::string>("name"),
                    Contains("c.toml:1: name: 'a [31mb' has control characters"));
  CHECK_NOTHROW(root.get<std::string>("source"));
}

TEST_CASE("table: a key that is never read is refused with a suggestion") {
  const Table root = Table::parse("[nic]\nbandwith = \"1 GB/s\"\n", "c.toml");
  const Table nic = root.table("nic");
  CHECK_FALSE(nic.has("bandwidth"));
  CHECK_THROWS_WITH(root.finish(),
                    Contains("c.toml:2: nic.bandwith: unknown key 'bandwith', did you mean "
                             "'bandwidth'?"));
}

TEST_CASE("table: wrong types and bare numbers are refused at their place") {
  const Table root = Table::parse("a = 5\nb = \"x\"\nc = [1, \"y\"]\nd = nan\n", "c.toml");
  CHECK_THROWS_WITH(root.get<Bandwidth>("a"), Contains("c.toml:1: a: '5' has no unit"));
  CHECK_THROWS_WITH(root.get<std::int64_t>("b"), Contains("not a whole number"));
  CHECK_THROWS_WITH(root.get<std::vector<double>>("c"), Contains("not a finite number"));
  CHECK_THROWS_WITH(root.get<double>("d"), Contains("not a finite number"));
  CHECK_THROWS_WITH(root.get<double>("missing"), Contains("missing: is missing"));
  CHECK_THROWS_WITH(root.integer("a", 1, 4), Contains("allowed: 1 to 4"));
  CHECK_THROWS_WITH(Table::parse("a = \n", "c.toml"), Contains("c.toml:1"));
  CHECK_THROWS_WITH(Table::parse("a = 1\na = 2\n", "c.toml"), Contains("c.toml:2"));
}

TEST_CASE("table: --set replaces a value and becomes its source") {
  Table root = Table::parse(text, "c.toml");
  root.set("nic.bandwidth", "10Gbit/s", "--set");
  root.set("nic.count", "4", "--set");
  const Table nic = root.table("nic");
  const auto bandwidth = nic.get<Sourced<Bandwidth>>("bandwidth");
  CHECK(bandwidth.value.value() == 1.25e9);
  CHECK(bandwidth.provenance.source == "--set");
  CHECK(nic.integer("count", 1, 8) == 4);
  root.set("nic.typo", "1", "--set");
  CHECK_FALSE(nic.has("latency") == false);
  root.get<std::string>("name");
  CHECK(root.tables("rail").at(0).has("id"));
  CHECK_THROWS_WITH(root.finish(), Contains("--set: nic.typo: unknown key 'typo'"));
}

TEST_CASE("table: --set needs no quotes where text is expected") {
  Table root = Table::parse("[nccl]\nversion = \"2.28\"\n", "c.toml");
  root.set("nccl.version", "2.19", "--set");
  root.set("nccl.algorithms", "ring", "--set");
  root.set("nccl.protocols", "[\"LL\", \"Simple\"]", "--set");
  const Table nccl = root.table("nccl");
  CHECK(nccl.get<std::string>("version") == "2.19");
  CHECK(nccl.get<std::vector<std::string>>("algorithms") == std::vector<std::string>{"ring"});
  CHECK(nccl.get<std::vector<std::string>>("protocols") ==
        std::vector<std::string>{"LL", "Simple"});
  CHECK_THROWS_WITH(Table::parse("version = 2.19", "c.toml").get<std::string>("version"),
                    Contains("is not a string"));
}

TEST_CASE("table: can be changed and read again") {
  Table root = Table::parse("[nic]\ncount = 2\n", "c.toml");
  for (const char* count : {"3", "4"}) {
    root.set("nic.count", count, "--set");
    root.set("nic.burst", fmt::format("\"{} MB\"", count), count);
    const auto burst = root.table("nic").get<Sourced<Bytes>>("burst");
    CHECK(root.table("nic").integer("count", 1, 8) == count[0] - '0');
    CHECK(burst.value.value() == (count[0] - '0') * 1e6);
    CHECK(burst.provenance.source == count);
    CHECK_FALSE(root.table("port").has("depth"));
    root.finish();
  }
  root.set("port.depth", "1", "--set");
  CHECK(root.table("port").integer("depth", 0, 1) == 1);
  root.set("nic.typo", "1", "--set");
  CHECK_THROWS_WITH(root.finish(), Contains("unknown key 'typo'"));
}

TEST_CASE("table: errors in a copy name the line of the original") {
  const Table parsed = Table::parse("[node]\ngpus = 'x'\nsizes = [1, 'y']\n", "c.toml");
  Table copy = parsed.copy();
  copy.set("node.nics", "8", "--set node.nics=8");
  CHECK_THROWS_WITH(copy.table("node").get<std::int64_t>("gpus"),
                    Catch::StartsWith("c.toml:2: node.gpus: "));
  CHECK_THROWS_WITH(copy.table("node").get<std::int64_t>("hosts"),
                    Catch::Contains("--set node.nics=8"));
  CHECK_THROWS_WITH(parsed.copy().table("node").get<std::int64_t>("hosts"),
                    Catch::StartsWith("c.toml:1: node.hosts: "));
}

std::string repeated(std::string_view piece, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += piece;
  return all;
}

TEST_CASE("table: endless keys and brackets are refused before parsing") {
  const std::string parts = repeated("a.", 50'000) + "a";
  for (const std::string& deep :
       {parts + " = 1", "[" + parts + "]", "[[" + parts + "]]", "x = {" + parts + " = 1}",
        "x = '''\n'''\n" + parts + " = 1", repeated("\"a\" . 'b' .", 20'000) + "a = 1",
        "x = \"\\\"\"\n" + parts + " = 1", "x = 'open\n" + parts + " = 1"})
    CHECK_THROWS_WITH(Table::parse(deep, "d.toml"),
                      Catch::StartsWith("d.toml:") && Contains("a key has too many parts"));
  for (const char* open : {"[", "{a=", "[{a="})
    CHECK_THROWS_WITH(Table::parse("\nx = " + repeated(open, 50'000), "d.toml"),
                      Catch::StartsWith("d.toml:2: lists and tables are nested too deeply"));
  Table root = Table::parse("", "d.toml");
  CHECK_THROWS_WITH(root.set(parts, "1", "--set"), Contains("a key has too many parts"));
  CHECK_THROWS_WITH(root.set("a", "{" + parts + " = 1}", "--set"), Contains("too many parts"));
}

TEST_CASE("table: a key of many parts is looked up no deeper than the tables") {
  std::string key = "node";
  for (int part = 0; part < 50'000; ++part) key += ".x";
  CHECK_FALSE(says(Table::parse("[node]\ngpus = 8", ""), key, "1"));
}

TEST_CASE(
    "table: dots and brackets in texts, comments and lists of numbers do not count as nesting") {
  const std::string dots = repeated(".", 100), open = repeated("[", 100);
  const Table root = Table::parse(
      "# " + dots + open + "\na = \"" + dots + "\\\"" + open + "\"\nb = '" + dots + open +
          "'\nc = [" + repeated("1.5, ", 100) + "1.5]\nd = '''" + dots + "\n'" + open + "'''\n",
      "t.toml");
  CHECK(root.get<std::vector<double>>("c").size() == 101);
  CHECK(root.get<std::string>("b") == dots + open);
}

TEST_CASE("table: reading a table of many keys takes less than quadratic time") {
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += "key_" + std::to_string(i) + " = 1\n";
  CHECK(Table::parse(many, "t.toml").keys().size() == 100'000);
}

}  // namespace
}  // namespace lambcast
