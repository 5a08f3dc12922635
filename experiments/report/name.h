// A text that many rows share (a model, a cluster, a status), stored once per process. A row
// contains a pointer; two names are equal if their pointers are.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>

namespace lambcast::report {

class Name {
 public:
  Name() : Name(std::string_view()) {}
  explicit Name(std::string_view text);
  Name& operator=(std::string_view text) { return *this = Name(text); }

  const std::string& text() const { return *text_; }
  operator const std::string&() const { return *text_; }
  bool empty() const { return text_->empty(); }

  friend bool operator==(Name a, Name b) { return a.text_ == b.text_; }
  friend bool operator==(Name a, std::string_view b) { return *a.text_ == b; }

 private:
  const std::string* text_;
};

}  // namespace lambcast::report

template <>
struct std::hash<lambcast::report::Name> {
  std::size_t operator()(lambcast::report::Name name) const {
    return std::hash<const std::string*>()(&name.text());
  }
};

template <>
struct fmt::formatter<lambcast::report::Name> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(lambcast::report::Name name, Context& context) const {
    return fmt::formatter<std::string_view>::format(name.text(), context);
  }
};
