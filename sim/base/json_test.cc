#include "sim/base/json.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace lambcast {
namespace {

TEST_CASE("json: members stay in their order, on one line and on several") {
  Json json{{"b", 1}, {"a", Json::array({true, nullptr})}};
  json["0"] = 0.5;
  CHECK(json_line(json) == R"({"b":1,"a":[true,null],"0":0.5})");
  CHECK(json_lines(json) ==
        "{\n  \"b\": 1,\n  \"a\": [\n    true,\n    null\n  ],\n  \"0\": 0.5\n}\n");
  CHECK(parse_json(json_lines(json)) == json);
}

TEST_CASE("json: texts are quoted, and bytes that are not UTF-8 replaced") {
  CHECK(json_string("a \"b\"\n\\") == R"("a \"b\"\n\\")");
  CHECK(json_string("\xff.toml") == "\"\xef\xbf\xbd.toml\"");
  CHECK(json_lines(Json("\xff")) == "\"\xef\xbf\xbd\"\n");
}

TEST_CASE("json: a text that is not JSON gives null") {
  CHECK(parse_json("{\"a\": 1,}").is_null());
  CHECK(parse_json("[1e999]").is_null());
  CHECK(parse_json("").is_null());
}

TEST_CASE("json: a missing number gives null") {
  CHECK(number_or_null(std::nullopt).is_null());
  CHECK(json_line(number_or_null(2.5)) == "2.5");
}

}  // namespace
}  // namespace lambcast
