#include "validate/program/traced_collectives.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "sim/base/temporary_folder.h"
#include "validate/program/job_trace.h"
#include "validate/program/trace_report.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

// Two steps of 1 ms as Kineto records them, each with a product and an all-gather of 33,554,432
// elements by 8 ranks. The second step also has an all_reduce without arguments.
constexpr const char* trace_of_gathers = R"({"traceEvents": [
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":0,"tid":1,"ts":0,"dur":1000},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":0,"dur":400},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllGather_RING_LL","pid":0,"tid":20,"ts":100,"dur":300,"args":{"device":0,"Collective name":"_allgather_base","In msg nelems":4194304,"Out msg nelems":33554432,"Group size":8,"dtype":"BFloat16","Process Group Ranks":"[0, 1, 2, 3, 4, 5, 6, 7]"}},
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#2","pid":0,"tid":1,"ts":1000,"dur":1000},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1000,"dur":400},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllGather_RING_LL","pid":0,"tid":20,"ts":1100,"dur":500,"args":{"device":0,"Collective name":"_allgather_base","In msg nelems":4194304,"Out msg nelems":33554432,"Group size":8,"dtype":"BFloat16","Process Group Ranks":"[0, 1, 2, 3, 4, 5, 6, 7]"}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":20,"ts":1700,"dur":50}
]})";

TEST_CASE("traced collectives: calls of one size are counted together, next to their forecast") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "trace.json").string();
  std::ofstream(path) << trace_of_gathers;
  const JobTrace trace = read_job_trace(path);
  REQUIRE(trace.collectives.size() == 1);  // the all_reduce has no size
  const TracedCollective& call = trace.collectives.front();
  CHECK(call.times == std::vector{Duration::microseconds(300), Duration::microseconds(500)});
  CHECK(call.bytes() == 2 * 33554432);
  CHECK(call.operation() == Op::all_gather);
  const std::string report = trace_report(trace, figure_of(trace, path,
                                                           {{"model", "llama2-7b"},
                                                            {"cluster", "hgx-h100-ndr"},
                                                            {"gpus", "8"},
                                                            {"optimizer", "adamw"},
                                                            {"micro_batch", "1"},
                                                            {"grad_accum", "1"},
                                                            {"steps", "10"}}));
  CHECK_THAT(report,
             Contains("_allgather_base               8   67.11 MB        1         400.0  "));
  CHECK_THAT(report, Contains(" to ") && !Contains("  -\n"));
}

ProcessGroup group_of(const std::string& members, int gpus = 64) {
  TracedCollective call;
  call.members = members;
  return call.group(8, gpus).value();
}

TEST_CASE("traced collectives: groups follow from their ranks on nodes of eight") {
  CHECK(group_of("[0, 1, 2, 3, 4, 5, 6, 7]") == ProcessGroup{.ranks = 8, .per_node = 8});
  CHECK(group_of("[5, 13]") == ProcessGroup{.ranks = 2, .per_node = 1, .siblings = 8});
  CHECK(group_of("[0, 1]", 2) == ProcessGroup{.ranks = 2, .per_node = 2});
  CHECK(group_of("[0, 2, 4, 6]") ==
        ProcessGroup{.ranks = 4, .per_node = 4, .stride = 2, .siblings = 2});
  CHECK(group_of("[1, 17, 33]") ==
        ProcessGroup{.ranks = 3, .per_node = 1, .node_stride = 2, .siblings = 8});
  for (const char* members :
       {"", "[]", "[3]", "[0, 1, 2, ...", "[0, 1, 5]", "[0, a]", "[0, 8, 9]"}) {
    TracedCollective call;
    call.members = members;
    CHECK_FALSE(call.group(8, 64).has_value());
  }
}

}  // namespace
}  // namespace lambcast
