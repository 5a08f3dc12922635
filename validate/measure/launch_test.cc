#include "validate/measure/launch.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>
#include <vector>

#include "sim/base/error.h"
#include "validate/measure/rendezvous.h"
#include "validate/measure/token_file.h"

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

// Returns a port on which no process listens at this moment.
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

TEST_CASE("without a launcher there is one process") {
  const Launch launch = launch_of(environment({{"SLURM_PROCID", "3"}}));  // incomplete
  CHECK(launch.processes == 1);
  CHECK(launch.rank == 0);
}

TEST_CASE(
    "MPI programs are recognised by the variables of their launchers, not by those of "
    "torchrun") {
  const auto place = [](std::map<std::string, std::string> values) {
    const MpiLaunch launch = mpi_launch_of(environment(std::move(values)));
    return std::pair(launch.rank, launch.processes);
  };
  const std::pair alone(0, 1);
  CHECK(place({}) == alone);
  CHECK(place({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}}) == alone);
  CHECK(place({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}) == alone);  // a batch script
  CHECK(place({{"OMPI_COMM_WORLD_RANK", "4"}, {"OMPI_COMM_WORLD_SIZE", "4"}}) == alone);
  CHECK(place({{"OMPI_COMM_WORLD_RANK", "x"}, {"OMPI_COMM_WORLD_SIZE", "4"}}) == alone);
  CHECK(place({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}}) == std::pair(3, 4));
  CHECK(place({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}) == std::pair(1, 2));
  CHECK(place({{"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "64"}}) == std::pair(5, 64));
  // With mpirun inside a step of Slurm, the variables of mpirun count.
  CHECK(place({{"OMPI_COMM_WORLD_RANK", "3"},
               {"OMPI_COMM_WORLD_SIZE", "4"},
               {"SLURM_PROCID", "0"},
               {"SLURM_STEP_NUM_TASKS", "2"}}) == std::pair(3, 4));
}

TEST_CASE("torchrun, mpirun and srun are recognised by their variables") {
  const Launch torch = launch_of(environment({{"RANK", "5"},
                                              {"WORLD_SIZE", "8"},
                                              {"LOCAL_RANK", "1"},
                                              {"MASTER_ADDR", "node0"},
                                              {"LAMBCAST_TOKEN", "secret"},
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
                                              {"LAMBCAST_TOKEN", "secret"},
                                              {"MASTER_ADDR", "10.0.0.1"}}));
  CHECK(slurm.processes == 4);
}

TEST_CASE("a step of Slurm over several hosts meets at its first host") {
  std::map<std::string, std::string> variables{{"SLURM_PROCID", "1"},
                                               {"SLURM_STEP_NUM_TASKS", "2"},
                                               {"SLURM_LOCALID", "0"},
                                               {"LAMBCAST_TOKEN", "secret"}};
  CHECK_THROWS_WITH(launch_of(environment(variables)),
                    Catch::StartsWith("MASTER_ADDR: is not set"));
  for (const auto& [list, first] : {std::pair{"node1", "node1"},
                                    {"node1,node2", "node1"},
                                    {"n[01-04,7],login1", "n01"},
                                    {"n[7]-ib", "n7-ib"},
                                    {"gpu-[a1-a2]x,b[1-2]", "gpu-a1x"},
                                    {"login,n[1-2]", "login"}}) {
    variables["SLURM_STEP_NODELIST"] = list;
    CHECK(launch_of(environment(variables)).address == first);
  }
  variables["SLURM_STEP_NODELIST"] = "n[01";
  CHECK_THROWS_WITH(launch_of(environment(variables)),
                    Catch::StartsWith("MASTER_ADDR: is not set"));
  variables["MASTER_ADDR"] = "10.0.0.1";
  CHECK(launch_of(environment(variables)).address == "10.0.0.1");
}

TEST_CASE("MPICH, Intel MPI and MVAPICH are recognised by their variables") {
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
                                                {"LAMBCAST_TOKEN", "secret"},
                                                {"MASTER_ADDR", "node0"}}));
  CHECK(mvapich.rank == 3);
  CHECK(mvapich.local_rank == 1);

  // This is one of several processes, but the variables do not determine its GPU.
  CHECK_THROWS_WITH(launch_of(environment({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}})),
                    Catch::StartsWith("PMI_SIZE: is above 1"));
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

TEST_CASE("one process of a launch prints messages for all") {
  CHECK(is_first(environment({})));
  CHECK(is_first(environment({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}})));
  CHECK_FALSE(
      is_first(environment({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}})));
  CHECK_FALSE(is_first(environment({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}})));
  // A process with invalid variables of its own prints the error itself.
  const auto torch = [](const char* rank, const char* size, const char* local) {
    return environment({{"RANK", rank}, {"WORLD_SIZE", size}, {"LOCAL_RANK", local}});
  };
  CHECK_FALSE(is_first(torch("1", "2", "1")));
  CHECK(is_first(torch("-1", "2", "0")));
  CHECK(is_first(torch("one", "2", "0")));
  CHECK(is_first(torch("2", "2", "0")));
  CHECK(is_first(torch("1", "0", "0")));
  CHECK(is_first(torch("1", "2", "-3")));
}

TEST_CASE("an invalid launch is refused") {
  const auto torch = [](const char* rank, const char* size) {
    return environment({{"RANK", rank}, {"WORLD_SIZE", size}, {"LOCAL_RANK", "0"}});
  };
  CHECK_THROWS_WITH(launch_of(torch("2", "2")),
                    "RANK: '2' is not an allowed value (allowed: 0 to 1)");
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

TEST_CASE("processes meet with IPv6 only") {
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

TEST_CASE("processes that do not meet report it") {
  const int port = free_port();
  CHECK_THROWS_WITH(meet_over_tcp({0, 6, 0, "127.0.0.1", port}, 1),
                    "ranks 1-5 of 6 did not come to 127.0.0.1, port " + std::to_string(port) +
                        " (MASTER_ADDR, MASTER_PORT), within 1 s");
  CHECK_THROWS_WITH(meet_over_tcp({1, 2, 0, "127.0.0.1", port}, 1),
                    Catch::Contains("rank 0 does not answer at 127.0.0.1:"));
  CHECK(meet_over_tcp({0, 1, 0, "", 0}, 1)->exchange("mine") == std::vector<std::string>{"mine"});
  CHECK_THROWS_WITH(meet_over_tcp({0, 2, 0, "192.0.2.1", port}, 1),
                    Catch::Contains("rank 0 cannot listen on 192.0.2.1 (MASTER_ADDR)"));
}

TEST_CASE("ranks of one host meet by the secret of rank 0, past a file of an earlier launch") {
  const int port = free_port();
  const std::string path = token_file_of_host(port).string();
  const TokenFile earlier(path);
  std::vector<std::string> seen;
  std::thread root([&] {
    seen = meet_over_tcp({0, 2, 0, "127.0.0.1", port, "", path}, 10)->exchange("rank 0");
  });
  // A process with the token of the earlier launch, or with the name of the job, is rejected.
  for (const std::string& token : {earlier.token(), std::string("job 123"), std::string()})
    CHECK_THROWS_WITH(meet_over_tcp({1, 2, 1, "127.0.0.1", port, token}, 10),
                      Catch::Contains("its token is not ours"));
  meet_over_tcp({1, 2, 1, "127.0.0.1", port, "", path}, 10)->exchange("rank 1");
  root.join();
  CHECK(seen == std::vector<std::string>{"rank 0", "rank 1"});
  CHECK_FALSE(std::filesystem::exists(path));
}

namespace {

// A peer that uses TCP, possibly with another protocol.
class Peer {
 public:
  explicit Peer(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    for (int attempt = 0; attempt < 200; ++attempt) {
      connected_ =
          connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
      if (connected_) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  ~Peer() { close(socket_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  bool connected() const { return connected_; }
  void say(const std::string& bytes) const {
    send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void say_hello(std::uint32_t rank, std::uint32_t processes, const std::string& token) const {
    const std::uint32_t words[] = {0x6c616d63, rank, processes,
                                   static_cast<std::uint32_t>(token.size())};
    say(std::string(reinterpret_cast<const char*>(words), sizeof words) + token);
  }
  // Returns the answer of rank 0, or -1 if it closes the connection.
  int answer() const {
    std::uint32_t word = 0;
    const bool whole = recv(socket_, &word, sizeof word, MSG_WAITALL) == sizeof word;
    return whole ? static_cast<int>(word) : -1;
  }

 private:
  int socket_;
  bool connected_ = false;
};

struct Meeting {
  std::vector<std::string> seen;
  std::string failure;
};

// Starts rank 0 of two with the token "ours".
std::thread start_root(Meeting& meeting, int port, int timeout_s = 20, int patience_s = 20) {
  return std::thread([&meeting, port, timeout_s, patience_s] {
    try {
      meeting.seen = meet_over_tcp({0, 2, 0, "127.0.0.1", port, "ours"}, timeout_s, patience_s)
                         ->exchange("rank 0");
    } catch (const Error& error) {
      meeting.failure = error.what();
    }
  });
}

}  // namespace

TEST_CASE("rank 0 listens on its given address and on no other") {
  const int port = free_port();
  Meeting meeting;
  std::thread root = start_root(meeting, port);
  REQUIRE(Peer(port).connected());
  const int other = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);  // 127.0.0.2 is also this machine
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  CHECK(connect(other, reinterpret_cast<const sockaddr*>(&address), sizeof address) == -1);
  CHECK(errno == ECONNREFUSED);
  close(other);
  CHECK(meet_over_tcp({1, 2, 1, "127.0.0.1", port, "ours"}, 10)->exchange("rank 1").size() == 2);
  root.join();
  CHECK(meeting.failure.empty());
}

TEST_CASE("strangers are not admitted and do not delay the others") {
  const int port = free_port();
  Meeting meeting;
  std::thread root = start_root(meeting, port);
  const Peer silent(port), truncated(port), garbage(port), wrong_token(port), long_token(port),
      no_token(port), bad_rank(port), bad_size(port), endless(port);
  REQUIRE(silent.connected());
  truncated.say("cma");
  garbage.say("GET / HTTP/1.1\r\nHost: a long enough request\r\n\r\n");
  wrong_token.say_hello(1, 2, "hers");
  long_token.say_hello(1, 2, std::string(100'000, 'x'));
  no_token.say_hello(1, 2, "");
  bad_rank.say_hello(7, 2, "ours");
  bad_size.say_hello(1, 3, "ours");
  const std::uint32_t endless_words[] = {0x6c616d63, 1, 2, 0xffffffff};
  endless.say(std::string(reinterpret_cast<const char*>(endless_words), sizeof endless_words));
  { const Peer leaves_early(port); }
  CHECK(garbage.answer() == -1);
  CHECK(wrong_token.answer() == 1);
  CHECK(long_token.answer() != 0);
  CHECK(no_token.answer() == 1);
  CHECK(bad_rank.answer() == 2);
  CHECK(bad_size.answer() == 2);
  CHECK(endless.answer() == 1);
  const auto began = std::chrono::steady_clock::now();
  CHECK(meet_over_tcp({1, 2, 1, "127.0.0.1", port, "ours"}, 10)->exchange("rank 1") ==
        std::vector<std::string>{"rank 0", "rank 1"});
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(4));
  root.join();
  CHECK(meeting.seen == std::vector<std::string>{"rank 0", "rank 1"});
  CHECK(meeting.failure.empty());
}

TEST_CASE("a process of another launch, or of a rank that is taken, gets an error") {
  const int port = free_port();
  Meeting meeting;
  std::thread root([&] {
    try {
      meet_over_tcp({0, 3, 0, "127.0.0.1", port, "ours"}, 5);
    } catch (const Error& error) {
      meeting.failure = error.what();
    }
  });
  const Peer first(port);
  first.say_hello(1, 3, "ours");
  CHECK(first.answer() == 0);
  CHECK_THROWS_WITH(meet_over_tcp({1, 3, 1, "127.0.0.1", port, "ours"}, 5),
                    Catch::Contains("two processes have the same rank"));
  CHECK_THROWS_WITH(meet_over_tcp({2, 3, 1, "127.0.0.1", port, "theirs"}, 5),
                    Catch::Contains("its token is not ours"));
  root.join();
  CHECK_THAT(meeting.failure, Catch::StartsWith("rank 2 of 3 did not come to 127.0.0.1"));
}

TEST_CASE("a member that closes, falls silent or sends too much ends the exchange") {
  const std::string too_long{"\xff\xff\xff\x7f"};
  const std::string half("\x08\0\0\0half", 8);
  for (const std::string& said : {std::string(), too_long, half}) {
    const int port = free_port();
    Meeting meeting;
    std::thread root = start_root(meeting, port, 20, 1);
    const Peer member(port);
    member.say_hello(1, 2, "ours");
    CHECK(member.answer() == 0);
    member.say(said);
    root.join();
    CHECK_THAT(meeting.failure, Catch::StartsWith("rank 1 of the measurement is gone"));
  }
  const int port = free_port();
  Meeting meeting;
  std::thread root = start_root(meeting, port);
  {
    const Peer member(port);
    member.say_hello(1, 2, "ours");
    CHECK(member.answer() == 0);
  }
  root.join();
  CHECK_THAT(meeting.failure, Catch::StartsWith("rank 1 of the measurement is gone"));
}

TEST_CASE("a root that never answers is an error after the time limit") {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(listener, 4) == 0);
  socklen_t size = sizeof address;
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  CHECK_THROWS_WITH(meet_over_tcp({1, 2, 1, "127.0.0.1", ntohs(address.sin_port)}, 1),
                    Catch::Contains("rank 0 does not answer"));
  close(listener);
}

TEST_CASE("threads meet and exchange, by rank, round after round") {
  constexpr int kThreads = 4, kRounds = 200;
  const auto meeting = meet_in_process(kThreads);
  std::vector<int> mixed(kThreads, 0);  // rounds in which a thread received another round's text
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
