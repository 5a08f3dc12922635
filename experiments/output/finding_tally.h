// What is found of many points of a sweep, each kind once: with how many points it concerns, and
// the words it has for the first of them.
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
  // Points come in their order.
  void add(std::size_t point, const std::vector<Finding>& findings);

  // "note: 3 of 12 points, first of 100Gbit/s: the streams ... [stream-limit]"; the gravest
  // kinds first. What every row says for itself, that it does not fit, that compression loses
  // there or how many steps it skips, is left out, and a flag that some points do not read, since
  // others do.
  std::vector<std::string> sentences(const std::function<std::string(std::size_t)>& name) const;

 private:
  struct Kind {
    Finding first;
    std::size_t points = 0, first_point = 0;
  };
  std::map<std::string, Kind, std::less<>> kinds_;
  std::size_t points_ = 0;
};

}  // namespace lambcast
