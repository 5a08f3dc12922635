// The keys without which a cluster description says too little.
#pragma once

#include "sim/base/table.h"

namespace lambcast {

// Throws Error (usage) that names all of them if several are missing. One that is missing alone is
// left to the reader of that key.
void refuse_missing_keys(const Table& root);

}  // namespace lambcast
