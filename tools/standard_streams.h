// stdin, stdout and stderr may be closed, full or without a reader when the program starts.
//
// A result that was not written completely is a failure. A message that nobody reads is not: a
// finished forecast succeeds if stderr is closed or its disk is full.
#pragma once

#include <optional>

namespace lambcast {

// Call it before anything is opened or printed. Closed streams get a descriptor that fails (stdin,
// stdout) or discards (stderr), so that no file gets their number. Text that stderr cannot take is
// discarded, without an exception.
void settle_standard_streams();

// Returns the exit code if stdout was not written completely: 128 + SIGPIPE without a message if
// its reader has ended, as in `| head`, else 1 with a line that gives the reason. Empty if all was
// written.
std::optional<int> exit_code_of_stdout();

}  // namespace lambcast
