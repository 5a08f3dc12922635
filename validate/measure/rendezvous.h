// How the processes of one measurement meet before NCCL connects them, and compare their clocks'
// readings after: a star of TCP connections around rank 0.
#pragma once

#include <string>
#include <vector>

#include "validate/measure/launch.h"

namespace lambcast::validate {

class Rendezvous {
 public:
  // Rank 0 listens on launch.port, the others connect to launch.address, for at most
  // `timeout_s`. A launch of one process opens nothing. Throws Error{Exit::failure} when they do
  // not meet.
  Rendezvous(const Launch& launch, int timeout_s);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // What every process gave, by rank, the same on all of them: an all-gather of short texts (up
  // to 1 MiB each). Also serves as the barrier. Throws Error{Exit::failure} when one is gone.
  std::vector<std::string> exchange(const std::string& mine);

 private:
  void accept_all(int timeout_s);
  void connect_to_root(int timeout_s);

  Launch launch_;
  std::vector<int> sockets_;  // at rank 0 one per other rank; elsewhere one
};

}  // namespace lambcast::validate
