// The compiled part of the Python package: questions as texts by key, answers as the JSON of the
// command line. Every answer is computed in a separate thread without Python's lock, so that other
// Python threads run. A ^C raises KeyboardInterrupt: a sweep ends in order; any other question is
// abandoned and its answer discarded.
#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <future>
#include <thread>

#include "experiments/output/forecast_output.h"
#include "sim/base/check.h"
#include "sim/base/complaint.h"
#include "sim/base/error.h"
#include "sim/base/printable.h"
#include "tools/answers.h"

namespace lambcast {
namespace {

namespace py = pybind11;
using Limit = std::optional<std::string>;

// Becomes true when Python is interrupted.
using Stopped = std::shared_ptr<std::atomic<bool>>;

StopAsked stop_of(const Stopped& stopped) {
  return [stopped] { return stopped->load(); };
}

constexpr std::chrono::milliseconds between_looks{50};
constexpr std::chrono::seconds stop_patience{1};  // time for a sweep to end in order

// Returns the result of the function, which must own all data that it reads, since it may outlive
// this call.
template <typename Ask>
auto answer(Ask ask) {
  const py::gil_scoped_release unlocked;
  const Stopped stopped = std::make_shared<std::atomic<bool>>(false);
  std::packaged_task<decltype(ask(stopped))()> task(
      [ask = std::move(ask), stopped]() mutable { return ask(stopped); });
  auto answered = task.get_future();
  std::thread(std::move(task)).detach();
  while (answered.wait_for(between_looks) != std::future_status::ready) {
    const py::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() == 0) continue;
    *stopped = true;
    {
      const py::gil_scoped_release while_it_ends;
      answered.wait_for(stop_patience);
    }
    throw py::error_already_set();
  }
  return answered.get();
}

// Raises the package's exception, with one line and the exit code of the program.
void raise(const std::string& message, Exit code) {
  const py::object type =
      py::module_::import("lambcast").attr(code == Exit::usage ? "UsageError" : "Error");
  PyErr_SetObject(type.ptr(), type(one_line(message), static_cast<int>(code)).ptr());
}

void raise_what_was_thrown(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    raise(error.what(), error.code());
  } catch (const InternalError& error) {
    raise(complaint_of(error).text, Exit::failure);
  }
}

}  // namespace
}  // namespace lambcast

PYBIND11_MODULE(_lambcast, module) {
  using namespace lambcast;
  py::register_exception_translator(raise_what_was_thrown);
  module.attr("version") = tool_version;
  module.def("simulate", [](const WhatIf& texts, const Texts& then) {
    return answer([=](const Stopped&) { return simulate_answer(texts, then); });
  });
  module.def("advise", [](const WhatIf& texts, const Texts& lists, const Texts& scans) {
    return answer([=](const Stopped&) { return advise_answer(texts, lists, scans); });
  });
  module.def("plan", [](const WhatIf& texts) {
    return answer([=](const Stopped& stopped) { return plan_answer(texts, stop_of(stopped)); });
  });
  module.def("compare", [](const Texts& names, const WhatIf& texts, const Texts& clusters,
                           const Texts& optimizers, const Texts& exchanges) {
    return answer([=](const Stopped&) {
      return compare_answer(names, texts, clusters, optimizers, exchanges);
    });
  });
  module.def("solve", [](const std::string& key, const std::string& wanted, const Limit& low,
                         const Limit& high, const WhatIf& texts) {
    return answer([=](const Stopped&) { return solve_answer({key, wanted, low, high}, texts); });
  });
  module.def("sensitivity", [](const WhatIf& texts, double by_percent) {
    return answer([=](const Stopped&) { return sensitivity_answer(texts, by_percent); });
  });
  module.def("collective", [](const WhatIf& texts) {
    return answer([=](const Stopped&) { return collective_answer(texts); });
  });
  module.def("sweep", [](const std::string& file, const std::string& out, bool resume,
                         const WhatIf& texts, const Texts& lists, const Texts& scans) {
    return answer([=](const Stopped& stopped) {
      return sweep_answer({file, out, resume, lists, scans}, texts, stop_of(stopped));
    });
  });
}
