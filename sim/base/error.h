// Errors a user can act on.
//
// Every mistake in a file, a flag or a combination of them is raised as one Error that names
// where it stands (file:line:key), what is wrong and what is allowed, and that carries the exit
// code promised to scripts. Mistakes of our own are a different thing: see check.h.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lambcast {

// The exit codes users script against.
enum class Exit {
  done = 0,
  failure = 1,  // something broke while running
  usage = 2,    // bad flags or bad input
  limit = 3,    // a limit of `validate` or --max-error was exceeded
  missing = 4,  // the hardware or library needed is not here
};

// A place in the user's input. An empty file means the command line; line 0 means unknown.
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

// "cluster.toml:12: nic.bandwidth: <what> (allowed: <allowed>)"; absent parts are left out.
std::string describe(const Where& where, std::string_view what, std::string_view allowed = {});

// Throws Error{Exit::usage} with the sentence of describe().
[[noreturn]] void fail_input(const Where& where, std::string_view what,
                             std::string_view allowed = {});

// The candidate closest to `word` by edit distance, or empty if none is close enough to be a
// plausible slip (two letters or a third of the word, ignoring case), or that the word begins.
std::string closest(std::string_view word, std::span<const std::string> candidates);

// "unknown <what> 'lam', did you mean 'lamb'?" plus the list of candidates as what is allowed.
[[noreturn]] void fail_unknown(const Where& where, std::string_view what, std::string_view word,
                               std::span<const std::string> candidates);

}  // namespace lambcast
