// Queue of future events. Events at one instant leave by priority, then in the order they were
// scheduled; no other tie-break (pointer, hash) is used.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "sim/base/units.h"

namespace lambcast {

template <typename Payload>
class EventQueue {
 public:
  // Events with lower priority values leave first.
  void push(SimTime at, int priority, Payload payload) {
    heap_.push({at, priority, scheduled_++, payload});
  }
  bool empty() const { return heap_.empty(); }
  SimTime next() const { return heap_.top().at; }
  Payload pop() {
    const Payload payload = heap_.top().payload;
    heap_.pop();
    return payload;
  }

 private:
  struct Event {
    SimTime at;
    int priority;
    std::uint64_t sequence;
    Payload payload;
    bool operator>(const Event& other) const {
      if (at != other.at) return at > other.at;
      if (priority != other.priority) return priority > other.priority;
      return sequence > other.sequence;
    }
  };
  std::priority_queue<Event, std::vector<Event>, std::greater<>> heap_;
  std::uint64_t scheduled_ = 0;
};

}  // namespace lambcast
