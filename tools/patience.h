// A word on stderr while something takes long: on a terminal a line that counts the seconds, in a
// log a line now and then. What is over soon says nothing.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace lambcast {

class Patience {
 public:
  // `what` goes on: "simulating every rank on its own".
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
