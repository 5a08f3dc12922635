#include "experiments/output/trace_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/json.h"

namespace lambcast {
namespace {

constexpr std::array<const char*, 8> lane_names{"compute",
                                                "layers",
                                                "collectives of passes",
                                                "communication",
                                                "sent activations",
                                                "received activations",
                                                "sent gradients",
                                                "received gradients"};

// Rounds a time to 1,024ths of a microsecond, which viewers add and subtract without rounding
// error. Otherwise slices could overlap by the last bit, and viewers would nest them.
constexpr double parts_of_us = 1024;
double on_grid(Duration time) { return std::round(time.us() * parts_of_us) / parts_of_us; }

}  // namespace

TraceEvents::TraceEvents(int process, const std::string& name, std::size_t classes, Json& events)
    : process_(process), classes_(classes), events_(events) {
  metadata("process_name", 0, {{"name", name}});
  metadata("process_sort_index", 0, {{"sort_index", process_}});
}

void TraceEvents::metadata(const char* what, std::size_t thread, Json args) {
  events_.push_back(
      {{"ph", "M"}, {"pid", process_}, {"tid", thread}, {"name", what}, {"args", std::move(args)}});
}

void TraceEvents::name_thread(std::size_t thread, const std::string& name) {
  if (!ends_.emplace(thread, Duration()).second) return;
  metadata("thread_name", thread, {{"name", name}});
  metadata("thread_sort_index", thread, {{"sort_index", thread}});
}

std::size_t TraceEvents::thread_of_micro_batches() {
  name_thread(0, "micro batches");
  return 0;
}

std::size_t TraceEvents::thread(Lane lane, std::size_t rank_class) {
  const auto index = static_cast<std::size_t>(lane);
  const std::size_t thread = 1 + lane_names.size() * rank_class + index;
  const std::string of = classes_ == 1 ? "" : fmt::format("stage {}: ", rank_class);
  name_thread(thread, of + lane_names[index]);
  return thread;
}

int TraceEvents::add(Slice slice) {
  events_.push_back({{"ph", "X"},
                     {"pid", process_},
                     {"tid", slice.thread},
                     {"name", std::move(slice.name)},
                     {"cat", std::move(slice.category)},
                     {"ts", on_grid(slice.begin)},
                     {"dur", on_grid(slice.end) - on_grid(slice.begin)},
                     {"args", std::move(slice.args)}});
  slices_.push_back({slice.thread, slice.begin, slice.end});
  ends_[slice.thread] = std::max(ends_[slice.thread], slice.end);
  return static_cast<int>(slices_.size()) - 1;
}

void TraceEvents::arrow(int from, int to) {
  const Drawn& source = slices_.at(static_cast<std::size_t>(from));
  const Drawn& target = slices_.at(static_cast<std::size_t>(to));
  const double length = on_grid(source.end) - on_grid(source.begin);
  const double left =
      on_grid(source.begin) + std::floor(0.999 * length * parts_of_us) / parts_of_us;
  if (on_grid(target.begin) < left) return;
  const int id = arrows_++;
  const auto end = [&](const char* phase, const Drawn& at, double us) {
    Json event = {
        {"ph", phase},    {"pid", process_},     {"tid", at.thread},
        {"name", "then"}, {"cat", "dependency"}, {"id", fmt::format("{}.{}", process_, id)},
        {"ts", us}};
    if (*phase == 'f') event["bp"] = "e";
    events_.push_back(std::move(event));
  };
  end("s", source, left);
  end("f", target, on_grid(target.begin));
}

}  // namespace lambcast
