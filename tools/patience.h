// A message on stderr during long work: on a terminal a line that counts the seconds, in a log a
// line from time to time. Short work prints nothing.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace lambcast {

class Patience {
 public:
  // `what` names the work: "simulating every rank on its own".
  explicit Patience(std::string what);
  ~Patience();
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

 private:
  void wait();

  std::string what_;
  bool terminal_;
  bool over_ = false;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::thread thread_;
};

}  // namespace lambcast
