// Counts the findings of all points of a sweep. Lists each kind once, with the number of points it
// affects and its message at the first of them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "models/finding.h"

namespace lambcast {

class FindingTally {
 public:
  // Call it for the points in order.
  void add(std::size_t point, const std::vector<Finding>& findings);

  // Returns sentences such as "note: 3 of 12 points, first of 100Gbit/s: the streams ...
  // [stream-limit]", sorted by severity. Within a severity, backends that end with an error come
  // first, then the findings of the most points. Leaves out findings that each row shows itself
  // (out of memory, compression loses, skipped steps), and unused flags that other points use.
  std::vector<std::string> sentences(const std::function<std::string(std::size_t)>& name) const;

  // Returns all errors and the first other sentences, up to six lines of a page, and the codes of
  // the rest in one line. `more` names the flag that prints all.
  std::vector<std::string> brief(const std::function<std::string(std::size_t)>& name,
                                 const std::string& more) const;

 private:
  struct Kind {
    Finding first;
    std::size_t points = 0, first_point = 0;
  };
  std::vector<const Kind*> sorted() const;
  std::string sentence(const Kind& kind, const std::function<std::string(std::size_t)>& name) const;

  std::map<std::string, Kind, std::less<>> kinds_;
  std::size_t points_ = 0;
};

}  // namespace lambcast
