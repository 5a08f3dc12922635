#include "experiments/report/gnuplot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

#include "sim/base/csv.h"
#include "sim/base/printable.h"

extern char** environ;

namespace lambcast::report {
namespace {

constexpr int legend_row_px = 23;

// Returns the width of a legend entry: a sample of 34 pixels and about 8.3 pixels per letter.
double legend_cell_px(const std::vector<LegendEntry>& entries) {
  std::size_t longest = 0;
  for (const LegendEntry& entry : entries) longest = std::max(longest, entry.name.size());
  return 64 + 8.3 * static_cast<double>(longest);
}

int legend_columns(const std::vector<LegendEntry>& entries, int width) {
  const int fit = std::max(1, static_cast<int>(width / legend_cell_px(entries)));
  const int count = static_cast<int>(entries.size());
  const int rows = (count + fit - 1) / fit;
  return (count + rows - 1) / rows;  // rows of equal length look better than full ones
}

// A child process whose outputs go to a pipe. It is killed with this object.
class Child {
 public:
  Child(const std::filesystem::path& folder, std::string script) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    outputs_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    // With -d gnuplot reads no start-up files, so a picture does not depend on the machine.
    std::string words[] = {"gnuplot", "-d", std::move(script)};
    char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
    if (posix_spawnp(&id_, "gnuplot", &actions, nullptr, arguments, environ) != 0) id_ = 0;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
  }
  ~Child() {
    if (id_ > 0) {
      kill(id_, SIGKILL);
      waitpid(id_, nullptr, 0);
    }
    if (outputs_ >= 0) close(outputs_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  bool started() const { return id_ > 0; }

  // Reads the child's output for at most `wait_ms` and keeps its beginning. Returns false once the
  // outputs are closed.
  bool listen(int wait_ms, std::string& said) {
    pollfd heard{outputs_, POLLIN, 0};
    if (poll(&heard, 1, wait_ms) <= 0) return true;
    char buffer[4096];
    const ssize_t count = read(outputs_, buffer, sizeof buffer);
    if (count < 0) return errno == EINTR;
    if (said.size() < sizeof buffer) said.append(buffer, static_cast<std::size_t>(count));
    return count > 0;
  }

  // Returns the exit status if the child has ended; 1 if a signal ended it.
  std::optional<int> ended() {
    int status = 0;
    if (waitpid(id_, &status, WNOHANG) != id_) return std::nullopt;
    id_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }

 private:
  pid_t id_ = 0;
  int outputs_ = -1;
};

}  // namespace

std::string script_text(std::string_view text) {
  std::string clean;
  for (const char c : printable(text)) {
    if (c == '>' && clean.ends_with("]]")) clean += ' ';
    clean += c;
  }
  std::string out = "'";
  for (std::size_t at = 0; at < clean.size();) {
    const std::size_t end = std::min(clean.find_first_not_of('\'', at), clean.size());
    if (end > at) out += fmt::format("'.\"{}\".'", clean.substr(at, end - at));
    at = std::min(clean.find('\'', end), clean.size());
    out += clean.substr(end, at - end);
  }
  return out + "'";
}

std::string data_text(std::string_view text) {
  std::string clean = printable(text);
  std::replace(clean.begin(), clean.end(), '"', '\'');
  std::replace(clean.begin(), clean.end(), '\\', '/');
  return fmt::format("\"{}\"", clean);
}

// Replaces backslashes: a trailing one would make the next line part of the comment.
std::string comment(std::string_view text) {
  std::string clean = printable(text);
  std::replace(clean.begin(), clean.end(), '\\', '/');
  return fmt::format("# {}\n", clean);
}

std::string data_number(double value) {
  return std::isfinite(value) ? csv::number(value) : std::string("?");
}

std::vector<double> round_places(double low, double high) {
  std::vector<double> places;
  if (!(low > 0) || !std::isfinite(high)) return places;
  for (const std::vector<double>& steps :
       {std::vector<double>{1, 2, 5}, {1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8}}) {
    places.clear();
    for (double decade = std::pow(10, std::floor(std::log10(low))); decade <= high; decade *= 10) {
      for (const double step : steps) {
        if (step * decade >= low && step * decade <= high) places.push_back(step * decade);
      }
    }
    if (places.size() > 2) break;
  }
  return places;
}

std::string log_ticks(const std::vector<double>& places, int most) {
  std::string ticks;
  double last = 0;
  for (const double place : places) {
    const double span = std::log(places.back() / places.front());
    if (last > 0 && std::log(place / last) < span / most * 0.999) continue;
    ticks += fmt::format("{}'{}' {}", ticks.empty() ? "" : ", ", csv::number(place), place);
    last = place;
  }
  return "(" + ticks + ")";
}

std::string margins(const Frame& frame) {
  return fmt::format(
      "  set lmargin at screen {:.4f}; set rmargin at screen {:.4f}; "
      "set bmargin at screen {:.4f}; set tmargin at screen {:.4f}\n",
      frame.left, frame.right, frame.bottom, frame.top);
}

std::string y_label(std::string_view text, double screen_x) {
  return fmt::format("  set label 5 {} at screen {:.4f},graph 0.5 rotate center\n",
                     script_text(text), screen_x);
}

std::string title_label(std::string_view title, int width, int height) {
  // The width of a letter is about 0.6 of its size.
  const auto fitting = [width](std::size_t letters) {
    return static_cast<int>(width / 0.6 / static_cast<double>(letters + 2));
  };
  constexpr int usual = 17, least = 8, of_two_lines = 13;
  const auto label = [height](const std::string& text, double first_line_px, int size) {
    return fmt::format("{} at screen 0.5,screen {:.4f} center font ',{}'", text,
                       1 - first_line_px / height, size);
  };
  if (fitting(title.size()) >= usual) return label(script_text(title), 20, usual);
  std::size_t longest = title.size(), at = 0;
  for (std::size_t comma = title.find(", "); comma < title.size();
       comma = title.find(", ", comma + 2)) {
    const std::size_t longer = std::max(comma + 1, title.size() - comma - 2);
    if (longer < longest) longest = longer, at = comma + 2;
  }
  const int size = std::clamp(fitting(longest), least, of_two_lines);
  if (at == 0) return label(script_text(title), 20, size);
  const std::string lines =
      script_text(title.substr(0, at - 1)) + ".\"\\n\"." + script_text(title.substr(at));
  return label(lines, 11, size);
}

std::string script(std::string_view name, std::string_view title, int width, int height,
                   std::string_view body) {
  return fmt::format(R"(set encoding utf8
set datafile missing '?'
do for [format in 'svg png'] {{
  if (format eq 'svg') {{
    set terminal svg noenhanced size {width},{height} dynamic font 'DejaVu Sans,15' \
      background '#ffffff' name 'lambcast'
    mark = 0.72; up = 0.6
  }} else {{
    set terminal pngcairo noenhanced size {width2},{height2} font 'DejaVu Sans,15' \
      fontscale 1.55 linewidth 2 pointscale 2 background '#ffffff'
    mark = 1; up = 0
  }}
  set output '{name}.'.format
  set multiplot
  set label 1 {title}
  set border 3 lc rgb '#404040'
  set tics nomirror textcolor rgb '#202020'
  set grid lc rgb '#d8d8d8' lw 1 dt 1
  unset key
{body}  unset multiplot
  set output
  reset
}}
)",
                     fmt::arg("width", width), fmt::arg("height", height),
                     fmt::arg("width2", 2 * width), fmt::arg("height2", 2 * height),
                     fmt::arg("name", name), fmt::arg("title", title_label(title, width, height)),
                     fmt::arg("body", body));
}

int legend_height(const std::vector<LegendEntry>& entries, int width) {
  const int columns = legend_columns(entries, width);
  const int count = static_cast<int>(entries.size());
  return 14 + legend_row_px * ((count + columns - 1) / columns);
}

std::string legend(const std::vector<LegendEntry>& entries, int width, int height) {
  const int columns = legend_columns(entries, width);
  const double cell = legend_cell_px(entries);
  const double start = (width - columns * cell) / 2 + 10;
  const int top = legend_height(entries, width) - legend_row_px / 2 - 2;
  std::string text;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const LegendEntry& entry = entries[i];
    const double x = start + cell * static_cast<double>(i % columns);
    const double y = (top - legend_row_px * static_cast<double>(i / columns)) / height;
    const double left = x / width, right = (x + 34) / width;
    const std::size_t tag = 100 + i;
    using Mark = LegendEntry::Mark;
    if (entry.mark == Mark::box) {
      text += fmt::format(
          "  set object {} rectangle from screen {:.5f},screen {:.5f} to screen {:.5f},screen "
          "{:.5f} fillcolor rgb '{}' fillstyle solid 1 noborder\n",
          tag, left, y - 6.0 / height, right, y + 6.0 / height, entry.colour);
    }
    if (entry.mark == Mark::line || entry.mark == Mark::dashes) {
      text += fmt::format(
          "  set arrow {} from screen {:.5f},screen {:.5f} to screen {:.5f},screen {:.5f} nohead "
          "lw 2 lc rgb '{}'{}\n",
          tag, left, y, right, y, entry.colour, entry.mark == Mark::dashes ? " dt (8,6)" : "");
    }
    if (entry.mark == Mark::line || entry.mark == Mark::point) {
      text += fmt::format(
          "  set label {} '' at screen {:.5f},screen {:.5f} point pt {} ps {}*mark lc rgb '{}'\n",
          tag + 100, (left + right) / 2, y, entry.point, entry.size, entry.colour);
    }
    text += fmt::format("  set label {} {} at screen {:.5f},screen {:.5f} left font ',14'\n", tag,
                        script_text(entry.name), right + 8.0 / width, y);
  }
  return text;
}

bool gnuplot_found() {
  const char* path = std::getenv("PATH");
  std::string_view rest = path ? path : "";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string candidate = std::string(rest.substr(0, end)) + "/gnuplot";
    if (access(candidate.c_str(), X_OK) == 0) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

GnuplotRun run_gnuplot(const std::filesystem::path& folder, const std::string& name,
                       const DrawingLimits& limits) {
  using End = GnuplotRun::End;
  using Clock = std::chrono::steady_clock;
  const std::string file = (folder / (name + ".gp")).string();
  Child child(folder, name + ".gp");
  if (!child.started()) return {End::failed, "gnuplot cannot be started"};
  std::string said;
  const auto start = Clock::now();
  bool speaks = true;
  while (true) {
    if (speaks) {
      speaks = child.listen(50, said);
    } else if (const auto code = child.ended()) {
      if (*code == 0) return {};
      return {End::failed, fmt::format("gnuplot failed on {}: {}", file, printable(said))};
    } else {
      poll(nullptr, 0, 1);
    }
    if (limits.stopped && limits.stopped()) return {End::stopped, "stopped"};
    if (std::chrono::duration<double>(Clock::now() - start).count() > limits.picture_s)
      return {End::too_long,
              fmt::format("gnuplot did not end within {} s on {}", limits.picture_s, file)};
  }
}

}  // namespace lambcast::report
