#include "sim/base/asked_keys.h"

#include "sim/base/check.h"

namespace lambcast {
namespace {

thread_local AskedKeys* listening = nullptr;

// Turns "kernel[3].name" into "kernel[].name".
std::string without_numbers(std::string_view path) {
  std::string out;
  bool inside = false;
  for (const char c : path) {
    if (c == ']') inside = false;
    if (!inside) out += c;
    if (c == '[') inside = true;
  }
  return out;
}

}  // namespace

AskedKeys::AskedKeys() {
  LAMBCAST_CHECK(listening == nullptr, "two listen to the keys of one thread");
  listening = this;
}

AskedKeys::~AskedKeys() { listening = nullptr; }

bool AskedKeys::anyone() { return listening != nullptr; }

void AskedKeys::note(std::string_view path, std::string_view what) {
  std::string& known = listening->keys_[without_numbers(path)];
  if (known.empty()) known = what;
}

}  // namespace lambcast
