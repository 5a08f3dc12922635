// stdin, stdout and stderr as whoever started us left them: closed, full, or read by nobody.
//
// A result that was not written whole is none, whatever the reason. A message that nobody reads is
// no reason to fail: a forecast that is done stays done when stderr is closed or its disk is full.
#pragma once

#include <optional>

namespace lambcast {

// To be called before anything is opened or printed. Closed streams get a descriptor that fails
// (stdin, stdout) or swallows (stderr), so that no file takes their number and is written into;
// what stderr cannot take is dropped, never thrown.
void settle_standard_streams();

// The exit code when stdout did not take everything: 128 + SIGPIPE without a word where its reader
// has gone, as in `| head`, else 1 with a line that says why. Empty when all is written.
std::optional<int> exit_code_of_stdout();

}  // namespace lambcast
