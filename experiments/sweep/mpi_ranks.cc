// Ranks of MPI. This is a separate library, loaded only if a launcher started several processes:
// linking MPI would slow the start of every command.
#include <mpi.h>

#include <cstdlib>
#include <list>

#include "experiments/sweep/ranks.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

constexpr int tag = 0;

void check(int status) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw Error(Exit::failure, std::string("MPI: ") + text);
}

class MpiRanks : public Ranks {
 public:
  MpiRanks() {
    int provided = 0;
    // Several threads compute, but only one of them calls MPI.
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &count_);
  }

  int rank() const override { return rank_; }
  int count() const override { return count_; }

  void send(int to, std::string text) override {
    Sent& sent = sent_.emplace_back(std::move(text), MPI_REQUEST_NULL);
    check(MPI_Isend(sent.text.data(), static_cast<int>(sent.text.size()), MPI_CHAR, to, tag,
                    MPI_COMM_WORLD, &sent.request));
  }

  std::optional<Message> receive() override {
    forget_sent();
    int there = 0;
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &there, &status));
    if (there == 0) return std::nullopt;
    int size = 0;
    check(MPI_Get_count(&status, MPI_CHAR, &size));
    Message message{status.MPI_SOURCE, std::string(static_cast<std::size_t>(size), '\0')};
    check(MPI_Recv(message.text.data(), size, MPI_CHAR, message.from, tag, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE));
    return message;
  }

  void leave() override { check(MPI_Finalize()); }

  [[noreturn]] void abort(int code) override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

 private:
  struct Sent {
    std::string text;
    MPI_Request request;
    Sent(std::string words, MPI_Request of) : text(std::move(words)), request(of) {}
  };

  void forget_sent() {
    for (auto sent = sent_.begin(); sent != sent_.end();) {
      int done = 0;
      check(MPI_Test(&sent->request, &done, MPI_STATUS_IGNORE));
      sent = done != 0 ? sent_.erase(sent) : std::next(sent);
    }
  }

  int rank_ = 0, count_ = 0;
  std::list<Sent> sent_;  // kept until sent, since MPI reads their texts
};

}  // namespace
}  // namespace lambcast

extern "C" lambcast::Ranks* lambcast_mpi_ranks() {
  static lambcast::MpiRanks ranks;
  return &ranks;
}
