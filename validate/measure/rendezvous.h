// Connects the ranks of one measurement over TCP before NCCL does, and exchanges their times
// afterwards.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "validate/measure/launch.h"

namespace lambcast::validate {

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  // Returns the texts of all members, in the same order on all of them: an all-gather of short
  // texts (up to 1 MiB each). Also serves as a barrier. Throws Error{Exit::failure} if a member is
  // gone.
  virtual std::vector<std::string> exchange(const std::string& mine) = 0;
};

// Connects the processes of a launcher as a star of TCP connections around rank 0. Rank 0 listens
// on launch.port of launch.address and on no other address; the others connect there. A launch of
// one process opens no socket. Throws Error{Exit::failure} if they have not met after `timeout_s`,
// naming the missing ranks. exchange() throws if one is silent for `patience_s`.
//
// Rank 0 admits only processes with launch.token, a free rank and the right number of processes;
// other connections may be silent or send any data without delaying the members. With
// launch.token_file, rank 0 writes a random token there once it listens. The token crosses the
// network unencrypted: it separates launches and rejects strangers, but hides nothing from
// eavesdroppers.
std::unique_ptr<Rendezvous> meet_over_tcp(const Launch& launch, int timeout_s,
                                          int patience_s = 600);

// Returns one rendezvous for each of `members` threads of this process. exchange() waits for all of
// them without a time limit: a thread that gives up must end the process.
std::vector<std::unique_ptr<Rendezvous>> meet_in_process(int members);

}  // namespace lambcast::validate
