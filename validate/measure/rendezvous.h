// How the ranks of one measurement meet before NCCL connects them, and compare their clocks'
// readings after.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "validate/measure/launch.h"

namespace lambcast::validate {

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  // Returns the texts of all members, in order and the same for all: an all-gather of short texts
  // (up to 1 MiB each). Also serves as the barrier. Throws Error{Exit::failure} when a member is
  // gone.
  virtual std::vector<std::string> exchange(const std::string& mine) = 0;
};

// The processes of a launcher: a star of TCP connections around rank 0, which listens on
// launch.port of launch.address and of no other address; the others connect there. A launch of one
// process opens nothing. Throws Error{Exit::failure} when they have not met after `timeout_s`,
// naming the ranks that did not come, and exchange() when one says nothing for `patience_s`.
//
// Rank 0 admits only processes with launch.token, a rank that is free and the right number of
// processes; anyone else may connect, be silent, or send what it likes, and holds nobody up. With
// launch.token_file, rank 0 writes a random token there once it listens. The token crosses the
// network as it is: it keeps launches and strangers apart, but hides nothing from who can listen.
std::unique_ptr<Rendezvous> meet_over_tcp(const Launch& launch, int timeout_s,
                                          int patience_s = 600);

// `members` threads of this process, one of the returned for each. exchange() waits for all of
// them, however long: a thread that gives up must end the process.
std::vector<std::unique_ptr<Rendezvous>> meet_in_process(int members);

}  // namespace lambcast::validate
