#include "validate/measure/launch.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <map>
#include <thread>

#include "sim/base/error.h"
#include "validate/measure/rendezvous.h"

using namespace lambcast;
using namespace lambcast::validate;

namespace {

Environment environment(std::map<std::string, std::string> values) {
  return [values](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

// A port nobody listens on at this moment.
int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address);
  socklen_t size = sizeof address;
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  close(socket);
  return ntohs(address.sin_port);
}

}  // namespace

TEST_CASE("without a launcher a process is alone") {
  const Launch launch = launch_of(environment({{"SLURM_PROCID", "3"}}));  // incomplete
  CHECK(launch.processes == 1);
  CHECK(launch.rank == 0);
}

TEST_CASE("torchrun, mpirun and srun are told by their variables") {
  const Launch torch = launch_of(environment({{"RANK", "5"},
                                              {"WORLD_SIZE", "8"},
                                              {"LOCAL_RANK", "1"},
                                              {"MASTER_ADDR", "node0"},
                                              {"MASTER_PORT", "1234"},
                                              {"TORCHELASTIC_USE_AGENT_STORE", "True"}}));
  CHECK(torch.rank == 5);
  CHECK(torch.processes == 8);
  CHECK(torch.local_rank == 1);
  CHECK(torch.address == "node0");
  CHECK(torch.port == 1235);  // the agent of torchrun listens on 1234 itself

  const Launch mpi = launch_of(environment({{"OMPI_COMM_WORLD_RANK", "1"},
                                            {"OMPI_COMM_WORLD_SIZE", "2"},
                                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}));
  CHECK(mpi.address == "127.0.0.1");  // all processes on one node
  CHECK(mpi.port == 29500);

  const Launch slurm = launch_of(environment({{"SLURM_PROCID", "0"},
                                              {"SLURM_STEP_NUM_TASKS", "4"},
                                              {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                                              {"SLURM_LOCALID", "0"},
                                              {"MASTER_ADDR", "10.0.0.1"}}));
  CHECK(slurm.processes == 4);
}

TEST_CASE("MPICH, Intel MPI and MVAPICH are told by their variables") {
  const Launch mpich = launch_of(environment(
      {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}}));
  CHECK(mpich.rank == 1);
  CHECK(mpich.processes == 2);
  CHECK(mpich.local_rank == 1);
  CHECK(mpich.address == "127.0.0.1");

  const Launch mvapich = launch_of(environment({{"MV2_COMM_WORLD_RANK", "3"},
                                                {"MV2_COMM_WORLD_SIZE", "4"},
                                                {"MV2_COMM_WORLD_LOCAL_RANK", "1"},
                                                {"MV2_COMM_WORLD_LOCAL_SIZE", "2"},
                                                {"MASTER_ADDR", "node0"}}));
  CHECK(mvapich.rank == 3);
  CHECK(mvapich.local_rank == 1);

  // One of several, but which GPU would be its own?
  CHECK_THROWS_WITH(launch_of(environment({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}})),
                    Catch::StartsWith("PMI_SIZE: says that this is one of several processes"));
  CHECK(launch_of(environment({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}})).processes == 1);
}

TEST_CASE("a step of Slurm on one host needs no address, and a batch script is one process") {
  std::map<std::string, std::string> variables{
      {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NTASKS", "4"}};
  CHECK(launch_of(environment(variables)).processes == 1);
  variables.insert({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_STEP_TASKS_PER_NODE", "4"}});
  CHECK(launch_of(environment(variables)).processes == 4);
  CHECK(launch_of(environment(variables)).address == "127.0.0.1");
}

TEST_CASE("one process of a launch speaks for all") {
  CHECK(is_first(environment({})));
  CHECK(is_first(environment({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}})));
  CHECK_FALSE(
      is_first(environment({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}})));
  CHECK_FALSE(is_first(environment({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}})));
}

TEST_CASE("a launch that makes no sense is refused") {
  const auto torch = [](const char* rank, const char* size) {
    return environment({{"RANK", rank}, {"WORLD_SIZE", size}, {"LOCAL_RANK", "0"}});
  };
  CHECK_THROWS_WITH(launch_of(torch("2", "2")), "RANK: '2' is no value for it (allowed: 0 to 1)");
  CHECK_THROWS_WITH(launch_of(torch("0", "two")), Catch::Contains("WORLD_SIZE: 'two'"));
  CHECK_THROWS_WITH(launch_of(torch("0", "2")),
                    "MASTER_ADDR: is not set: the 2 processes need the address of the host of "
                    "rank 0");
}

TEST_CASE("processes meet and exchange, by rank") {
  constexpr int kProcesses = 4;
  const int port = free_port();
  std::vector<std::vector<std::string>> seen(kProcesses);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kProcesses; ++rank) {
    threads.emplace_back([&seen, rank, port] {
      const auto others = meet_over_tcp({rank, kProcesses, rank, "127.0.0.1", port}, 10);
      others->exchange({});
      seen[static_cast<std::size_t>(rank)] = others->exchange("rank " + std::to_string(rank));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& all : seen) {
    CHECK(all == std::vector<std::string>{"rank 0", "rank 1", "rank 2", "rank 3"});
  }
}

TEST_CASE("processes meet where there is but IPv6") {
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const int probe = ::socket(AF_INET6, SOCK_STREAM, 0);
  const bool there =
      probe >= 0 && bind(probe, reinterpret_cast<sockaddr*>(&loopback), sizeof loopback) == 0;
  if (probe >= 0) close(probe);
  if (!there) {
    WARN("SKIPPED: this machine has no ::1");
    return;
  }
  const int port = free_port();
  std::vector<std::string> seen;
  std::thread root([&] { seen = meet_over_tcp({0, 2, 0, "::1", port}, 10)->exchange("rank 0"); });
  CHECK(meet_over_tcp({1, 2, 1, "::1", port}, 10)->exchange("rank 1").size() == 2);
  root.join();
  CHECK(seen == std::vector<std::string>{"rank 0", "rank 1"});
}

TEST_CASE("processes that do not meet say so") {
  const int port = free_port();
  CHECK_THROWS_WITH(meet_over_tcp({0, 2, 0, "127.0.0.1", port}, 1),
                    Catch::Contains("1 of 2 processes did not come to port"));
  CHECK_THROWS_WITH(meet_over_tcp({1, 2, 0, "127.0.0.1", port}, 1),
                    Catch::Contains("rank 0 does not answer at 127.0.0.1:"));
  CHECK(meet_over_tcp({0, 1, 0, "", 0}, 1)->exchange("mine") == std::vector<std::string>{"mine"});
}

TEST_CASE("threads meet and exchange, by rank, round after round") {
  constexpr int kThreads = 4, kRounds = 200;
  const auto meeting = meet_in_process(kThreads);
  std::vector<int> mixed(kThreads, 0);  // rounds in which a thread saw another round's text
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kThreads; ++rank) {
    threads.emplace_back([&meeting, &mixed, rank] {
      const auto me = static_cast<std::size_t>(rank);
      for (int round = 0; round < kRounds; ++round) {
        std::vector<std::string> expected;
        for (int r = 0; r < kThreads; ++r) expected.push_back(std::to_string(1000 * round + r));
        mixed[me] += meeting[me]->exchange(expected[me]) != expected;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(mixed == std::vector<int>(kThreads, 0));
}
