// The processes of one program that a launcher (mpirun, srun) started, on one machine or several,
// and messages among them. Whoever calls does so from one thread.
#pragma once

#include <optional>
#include <string>

namespace lambcast {

class Ranks {
 public:
  struct Message {
    int from = 0;
    std::string text;
  };

  virtual ~Ranks() = default;

  virtual int rank() const = 0;
  virtual int count() const = 0;
  // Returns at once. What one rank sends to another arrives in the order in which it was sent.
  virtual void send(int to, std::string text) = 0;
  // What has arrived, if anything has. Messages are on their way only while this is called.
  virtual std::optional<Message> receive() = 0;
  // Waits until all ranks have called it; none may be sent a message any more.
  virtual void leave() = 0;
  // Ends all ranks that there still are, this one included, with an exit code.
  [[noreturn]] virtual void abort(int code) = 0;
};

// What the library of mpi_ranks.cc is asked for by name, under the name of this type: the ranks of
// MPI, which is started by that.
using MpiRanksFunction = Ranks*();
constexpr const char* mpi_ranks_function = "lambcast_mpi_ranks";

}  // namespace lambcast
