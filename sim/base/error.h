// Errors that a user can act on.
//
// Every mistake in a file, a flag or a combination of flags is raised as one Error. It names the
// place (file:line:key), what is wrong and what is allowed, and has the exit code documented for
// scripts. Faults of lambcast itself are raised by check.h.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lambcast {

// Exit codes that scripts may rely on.
enum class Exit {
  done = 0,
  failure = 1,  // an operation failed while running
  usage = 2,    // bad flags or bad input
  limit = 3,    // a limit of `validate` or --max-error was exceeded
  missing = 4,  // required hardware or library not found
};

// A place in the user's input. An empty file means the command line; line 0 means an unknown line.
struct Where {
  std::string file;
  int line = 0;
  std::string key;
};

class Error : public std::runtime_error {
 public:
  Error(Exit code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Exit code() const { return code_; }

 private:
  Exit code_;
};

// Returns "cluster.toml:12: nic.bandwidth: <what> (allowed: <allowed>)". Absent parts are left out.
std::string describe(const Where& where, std::string_view what, std::string_view allowed = {});

// Throws Error{Exit::usage} with the sentence of describe().
[[noreturn]] void fail_input(const Where& where, std::string_view what,
                             std::string_view allowed = {});

// Returns the candidate closest to `word` by edit distance, or one that begins with `word`. Empty
// if none is close enough for a typing error: two letters or a third of the word, ignoring case.
std::string closest(std::string_view word, std::span<const std::string> candidates);

// Throws the error "unknown <what> 'lam', did you mean 'lamb'?", which lists the candidates as
// allowed values.
[[noreturn]] void fail_unknown(const Where& where, std::string_view what, std::string_view word,
                               std::span<const std::string> candidates);

}  // namespace lambcast
