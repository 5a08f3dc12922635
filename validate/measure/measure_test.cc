#include "validate/measure/measure.h"
#include "validate/measure/expected_result.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "validate/measure/shared_gpu.h"

using namespace lambcast;
using namespace lambcast::validate;

namespace {

std::string refusal(const std::vector<std::string>& flags) {
  try {
    parse_measure_flags(flags);
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("flags have the meaning that they have in nccl-tests") {
  const MeasureOptions o = parse_measure_flags(
      {"-b", "64K", "-e", "1M", "-f", "4", "-n", "7", "-w", "2", "-a", "3", "--op", "alltoall"});
  CHECK(o.min_bytes == 65536);
  CHECK(o.max_bytes == 1048576);
  CHECK(o.iterations == 7);
  CHECK(o.warmup == 2);
  CHECK(o.rank_time == RankTime::max);
  CHECK(sizes_to_run(o, block_bytes(o.operation, 4)) ==
        std::vector<std::uint64_t>{65536, 262144, 1048576});
  CHECK(parse_measure_flags({}).rank_time == RankTime::mean);
  const MeasureOptions launched = parse_measure_flags({"-m", "3", "-G", "2", "-z", "1"});
  CHECK(launched.aggregated == 3);
  CHECK(launched.graph_launches == 2);
  CHECK(launched.blocking);
  CHECK(refusal({"-m", "0"}) != "accepted");
  CHECK_THAT(refusal({"-z", "2"}), Catch::StartsWith("-z: unknown value '2'"));
}

TEST_CASE("sizes are whole blocks") {
  const MeasureOptions o = parse_measure_flags({"-b", "1", "-e", "100", "-i", "33"});
  // 1, 34, 67 and 100, rounded down to multiples of 4 * 3 = 12, are 0 (left out), 24, 60 and 96.
  CHECK(block_bytes(Operation::all_gather, 3) == 12);
  CHECK(sizes_to_run(o, 12) == std::vector<std::uint64_t>{24, 60, 96});
  // A vector, padded or not, has whole elements: 0 (left out), 32, 64, 100.
  CHECK(block_bytes(Operation::all_reduce, 3) == 4);
  CHECK(block_bytes(Operation::compressed_allreduce, 3) == 4);
  CHECK(sizes_to_run(o, 4) == std::vector<std::uint64_t>{32, 64, 100});
  CHECK_THROWS_WITH(sizes_to_run(o, 128), "-e: no size holds a whole block of 128 bytes");
  // Rejects steps so small that the list of sizes would fill the memory.
  CHECK_THROWS_WITH(sizes_to_run(parse_measure_flags({"-b", "1", "-e", "1024G", "-i", "1"}), 4),
                    "-i: gives more than 10000 sizes");
  CHECK_THROWS_WITH(sizes_to_run(parse_measure_flags({"-b", "1", "-e", "1024G", "-f", "1.001"}), 4),
                    "-f: gives more than 10000 sizes");
}

TEST_CASE("wrong flags are refused by name") {
  CHECK(refusal({"-b"}) == "-b: needs a value");
  CHECK_THAT(refusal({"-b", "12Q"}), Catch::StartsWith("-b: '12Q' is not a size"));
  CHECK_THAT(refusal({"-b", "9999G"}), Catch::StartsWith("-b: '9999G' is not a size"));
  CHECK(refusal({"-b", "2K", "-e", "1K"}) == "-e: is below -b");
  CHECK_THAT(refusal({"-n", "1.5"}), Catch::Contains("'1.5' is not a whole number"));
  CHECK_THAT(refusal({"-f", "1"}), Catch::StartsWith("-f: '1' is not an allowed value"));
  CHECK_THAT(refusal({"-a", "4"}), Catch::StartsWith("-a: unknown value '4'"));
  CHECK_THAT(refusal({"--stagin", "none"}), Catch::Contains("did you mean '--staging'?"));
  CHECK_THAT(refusal({"--op", "stream"}), Catch::StartsWith("--op: unknown collective 'stream'") &&
                                              !Catch::Contains("ping_pong, stream"));
  CHECK(refusal({"--seconds-per-size", "1", "-w", "0"}) ==
        "-w: --seconds-per-size goes by the time of a warm-up (allowed: at least 1)");
}

TEST_CASE("elements have the type of -d, and its name in nccl-tests or training programs") {
  CHECK(parse_measure_flags({"-d", "half"}).type == DataType::half);
  CHECK(parse_measure_flags({"-d", "bf16"}).type == DataType::bfloat16);
  CHECK(parse_measure_flags({}).type == DataType::float32);
  CHECK_THAT(refusal({"-d", "double"}), Catch::StartsWith("-d: unknown value 'double'"));
  CHECK(block_bytes(Operation::all_gather, 3, DataType::half) == 6);
  CHECK(block_bytes(Operation::all_reduce, 3, DataType::uint8) == 1);
  MeasureOptions o = parse_measure_flags({"-d", "bfloat16"});
  check_type(o, 256);
  CHECK_THROWS_WITH(check_type(o, 257), Catch::StartsWith("-c: sums of bfloat16 over 257 ranks"));
  o.check_iterations = 0;
  check_type(o, 257);
  o.operation = Operation::compressed_allreduce;
  CHECK_THROWS_WITH(check_type(o, 2), Catch::StartsWith("-d: compressed_allreduce"));
}

TEST_CASE("every type holds the values and sums of its pattern exactly") {
  for (const DataType type : data_types)
    for (const Operation operation : {Operation::all_gather, Operation::all_reduce}) {
      INFO(name_of(type) << " " << name_of(operation));
      const ExpectedResult expected{operation, 8, 0, 1000, type};
      for (std::uint64_t i = 0; i < 1000; ++i) {
        float sum = 0;
        for (int rank = 0; rank < 8; ++rank) sum += pattern_element(type, operation, rank, i);
        const float right =
            operation == Operation::all_reduce ? sum : pattern_element(type, operation, 0, i);
        CHECK(expected.at(0, i) == right);
        char element[4];
        store(type, element, 0, right);
        CHECK(load(type, element, 0) == right);
      }
    }
}

TEST_CASE("flags that only nccl-tests has are refused with the replacement") {
  CHECK(refusal({"--datatype", "half"}) == "--datatype: is spelled -d here");
  CHECK_THAT(refusal({"-t", "8"}), Catch::Contains("give -g, or start more processes"));
  for (const char* flag : {"-o", "-t", "--nthreads"})
    CHECK_THAT(refusal({flag, "1"}), Catch::Contains("is not supported"));
  CHECK(refusal({"--minbytes", "8"}) == "--minbytes: is spelled -b here");
}

namespace {

std::string nccl_refusal(const std::vector<std::string>& flags) {
  std::ostringstream out;
  try {
    measure_nccl(parse_measure_flags(flags), out);
  } catch (const Error& error) {
    CHECK(out.str().empty());
    return std::string(error.code() == Exit::usage ? "usage: " : "missing: ") + error.what();
  }
  return out.str();
}

// A socket that listens like an MPS daemon, in a folder of its own.
struct Listener {
  std::string folder = (std::filesystem::temp_directory_path() / "lambcast-mps-XXXXXX").string();
  int socket;
  explicit Listener(int type) : socket(::socket(AF_UNIX, type, 0)) {
    REQUIRE(mkdtemp(folder.data()) != nullptr);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (folder + "/control").c_str());
    REQUIRE(bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(socket, 1) == 0);
  }
  ~Listener() {
    close(socket);
    std::filesystem::remove_all(folder);
  }
  Environment environment() const {
    return [this](const std::string& name) -> std::optional<std::string> {
      if (name == "CUDA_MPS_PIPE_DIRECTORY") return folder;
      return std::nullopt;
    };
  }
};

}  // namespace

TEST_CASE("NCCL without a GPU is one sentence and exit code 4") {
  const std::string what = nccl_refusal({"-b", "1K", "-e", "1K"});
  const bool missing = what.find("missing: there is no NVIDIA GPU") == 0 ||
                       what.find("missing: this lambcast was built without CUDA") == 0;
  // On a machine with a GPU, it measures one row with a checked result.
  CHECK((missing || what.find("# Out of bounds values : 0 OK") != what.npos));
  CHECK((!missing || what.find('\n') == what.npos));
}

TEST_CASE("a measurement that NCCL cannot do is refused before it searches for a GPU") {
  if (nccl_refusal({}).find("built without CUDA") != std::string::npos) return;
  CHECK(nccl_refusal({"--op", "ping_pong"}) == "usage: --op: ping_pong is not measured with NCCL");
  CHECK_THAT(nccl_refusal({"--statistic", "median"}),
             Catch::StartsWith("usage: --statistic: NCCL"));
  CHECK_THAT(nccl_refusal({"--staging", "memcpy"}), Catch::StartsWith("usage: --staging: NCCL"));
  CHECK_THAT(nccl_refusal({"--op", "compressed_allreduce", "-m", "2"}),
             Catch::StartsWith("usage: -m: compressed_allreduce runs kernels"));
  CHECK_THAT(nccl_refusal({"-z", "1", "-G", "1"}),
             Catch::StartsWith("usage: -z: does not apply with -G"));
  CHECK(nccl_refusal({"--share-gpu", "yes"}) ==
        "usage: -g: --share-gpu without a launcher needs the number of ranks (allowed: 2 to 8 per "
        "GPU)");
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "2", 1);
  setenv("LOCAL_RANK", "0", 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  CHECK(nccl_refusal({"--share-gpu", "yes", "-g", "2"}) ==
        "usage: -g: with --share-gpu a process of a launcher is one rank (allowed: 1)");
}

TEST_CASE("a table of a shared GPU states its use") {
  CHECK(words_of(GpuSharing::none).how.empty());
  CHECK_THAT(words_of(GpuSharing::copies).how, Catch::Contains("private copy of NCCL"));
  CHECK_THAT(words_of(GpuSharing::mps).how, Catch::Contains("under MPS"));
  // Time slices do not measure latency, but the other two ways do.
  CHECK_THAT(words_of(GpuSharing::slices).unfit_for, Catch::StartsWith("latency"));
  for (const GpuSharing sharing : {GpuSharing::copies, GpuSharing::mps}) {
    CHECK_THAT(words_of(sharing).fit_for, Catch::StartsWith("kernel launch"));
    CHECK_THAT(words_of(sharing).unfit_for, Catch::StartsWith("links between GPUs, RDMA"));
  }
}

TEST_CASE("MPS runs if a process listens on its socket") {
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    Listener daemon(type);
    CHECK(mps_runs(daemon.environment()));
    shutdown(daemon.socket, SHUT_RDWR);
    close(daemon.socket);
    CHECK(!mps_runs(daemon.environment()));  // the file still exists
    std::filesystem::remove(daemon.folder + "/control");
    CHECK(!mps_runs(daemon.environment()));
    daemon.socket = -1;
  }
}
