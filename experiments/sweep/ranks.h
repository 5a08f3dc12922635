// The processes of one program that a launcher (mpirun, srun) started, on one machine or several,
// and messages between them. All calls must come from one thread.
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
  // Sends a message; returns at once. Messages from one rank to another arrive in the order in
  // which they were sent.
  virtual void send(int to, std::string text) = 0;
  // Returns a message that has arrived, if any. Messages progress only during this call.
  virtual std::optional<Message> receive() = 0;
  // Waits until all ranks have called it. Afterwards no message may be sent to any rank.
  virtual void leave() = 0;
  // Ends all remaining ranks, including this one, with an exit code.
  [[noreturn]] virtual void abort(int code) = 0;
};

// Type and name of the function in the library of mpi_ranks.cc that starts MPI and returns the
// ranks.
using MpiRanksFunction = Ranks*();
constexpr const char* mpi_ranks_function = "lambcast_mpi_ranks";

}  // namespace lambcast
