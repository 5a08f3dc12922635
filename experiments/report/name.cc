#include "experiments/report/name.h"

#include <mutex>
#include <unordered_set>

namespace lambcast::report {

Name::Name(std::string_view text) {
  static const std::string nothing;
  text_ = &nothing;
  if (text.empty()) return;
  static std::mutex mutex;
  static std::unordered_set<std::string> texts;
  const std::lock_guard lock(mutex);
  text_ = &*texts.emplace(text).first;
}

}  // namespace lambcast::report
