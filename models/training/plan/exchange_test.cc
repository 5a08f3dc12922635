#include "models/training/plan/exchange.h"

#include <catch2/catch.hpp>

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("exchange: as it is written, and back") {
  for (const char* text : {"all_reduce",
                           "fp16",
                           "bf16",
                           "onebit",
                           "fp8",
                           "fp8:e5m2",
                           "fp8:owed",
                           "int8",
                           "int4",
                           "qgz",
                           "qgz:int8",
                           "loco",
                           "loco:int8",
                           "sdp4bit",
                           "int8:owed",
                           "int4:owed",
                           "powersgd:4",
                           "powersgd:4:2",
                           "topk:1%",
                           "randomk:0.1%",
                           "chunktopk:64",
                           "dctsign:32",
                           "lossless:67%",
                           "chunktopk:64 / two-level / every 30 / nodes",
                           "local:16",
                           "localsgd:16",
                           "local:16:8",
                           "localsgd:500:64",
                           "localsgd:16 / nodes / start 1000",
                           "powersgd:1 / flat / overlapped / start 1000",
                           "neighbours:ring",
                           "neighbours:exponential"})
    CHECK(name_of(parse_exchange(text, {})) == text);
  CHECK(parse_exchange("topk:0.01", {}) == parse_exchange("topk:1%", {}));
  CHECK(parse_exchange("powersgd:65536", {}).parameter == 65536);
  for (const char* text :
       {"",          "fp9",          "fp8:1",        "fp8:e4m3",       "qgz:int4",
        "loco:",     "powersgd:4:",  "powersgd:4:0", "powersgd:4:2:2", "localsgd",
        "local:4:0", "local:4:2:2",  "powersgd",     "powersgd:0",     "powersgd:1.5",
        "topk:0%",   "topk:101%",    "topk:",        "local:x",        "local:0",
        "int4:",     "powersgd:nan", "neighbours",   "neighbours:",    "neighbours:2",
        "ring",      "chunktopk",    "chunktopk:0",  "dctsign:4097",   "dctsign:1%"}) {
    INFO(text);
    CHECK_THROWS_WITH(parse_exchange(text, {"", 0, "--exchange"}), Contains("powersgd:RANK"));
  }
}

TEST_CASE("exchange: a start is a number of steps before another exchange than all_reduce") {
  for (const char* text : {"int8 / start", "int8 / start 0", "int8 / start 1 / start 2"})
    CHECK_THROWS_WITH(parse_exchange(text, {"", 0, "--exchange"}), Contains("/ start STEPS"));
  CHECK(!refused_form(parse_exchange("all_reduce / start 5", {})).empty());
  CHECK(seldom_meets(parse_exchange("local:16 / start 500", {}), 510) == "its ranks never meet");
}

TEST_CASE("exchange: fp32 is the codec of weights exchanged every H steps") {
  CHECK(parse_exchange("fp32 / every 30", {}).kind == ExchangeKind::local);
  for (const char* text : {"fp32", "fp32 / two-level", "fp32 / flat / after"})
    CHECK_THROWS_WITH(parse_exchange(text, {"", 0, "--exchange"}),
                      Contains("fp32 applies only to weights") && Contains("all_reduce"));
}

TEST_CASE("exchange: a share of 1, which would be all elements, is rejected") {
  CHECK_THROWS_WITH(
      parse_exchange("topk:1", {"", 0, "--exchange"}),
      "--exchange: topk:1 is all elements (allowed: topk:1%, topk:0.01, or 100% where "
      "all are meant)");
  CHECK(parse_exchange("randomk:100%", {}).parameter == 1);
}

}  // namespace
}  // namespace lambcast
