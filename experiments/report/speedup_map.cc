#include "experiments/report/speedup_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "experiments/report/gnuplot.h"
#include "sim/base/csv.h"

namespace lambcast::report {
namespace {

constexpr int map_panel_px = 340;

// Returns borders of the cells around ascending values: geometric means inside, mirrored outside.
std::vector<double> cell_borders(const std::vector<double>& places) {
  std::vector<double> borders = {places[0] * std::sqrt(places[0] / places[1])};
  for (std::size_t i = 0; i + 1 < places.size(); ++i) {
    borders.push_back(std::sqrt(places[i] * places[i + 1]));
  }
  borders.push_back(places.back() * std::sqrt(places.back() / places[places.size() - 2]));
  return borders;
}

std::vector<double> widened(const std::vector<double>& places) {
  const std::vector<double> borders = cell_borders(places);
  std::vector<double> wide = {borders.front()};
  wide.insert(wide.end(), places.begin(), places.end());
  wide.push_back(borders.back());
  return wide;
}

// Returns the largest factor by which a cell differs from 1, up or down; at least 1.1.
double spread(const std::vector<SpeedupMap>& maps) {
  double most = 1.1;
  for (const SpeedupMap& map : maps) {
    for (const auto& row : map.speedup) {
      for (const double s : row) {
        if (s > 0) most = std::max({most, s, 1 / s});
      }
    }
  }
  return most;
}

std::string colour_ticks(double spread) {
  std::string ticks;
  std::vector<double> places = {0.01, 0.03, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 100};
  if (spread < 1.7) places = {0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.4, 1.6};
  if (spread < 1.25) places = {0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.2};
  for (const double place : places) {
    if (place > spread || place < 1 / spread) continue;
    ticks += fmt::format("{}'{}x' {}", ticks.empty() ? "" : ", ", place, place);
  }
  return "(" + ticks + ")";
}

// Formats tick marks at the middles of the columns of cells. With more than 12 columns, some of the
// values have a mark, at the value itself.
std::string column_ticks(const std::vector<double>& values, const std::vector<double>& borders) {
  constexpr std::size_t most = 12;
  if (values.size() > most) return log_ticks(values, static_cast<int>(most));
  std::string ticks;
  for (std::size_t i = 0; i < values.size(); ++i)
    ticks += fmt::format("{}'{}' {:.6g}", ticks.empty() ? "" : ", ", csv::number(values[i]),
                         std::sqrt(borders[i] * borders[i + 1]));
  return "(" + ticks + ")";
}

// Describes the lines of a map above its frame, or why there are none.
std::string line_label(const SpeedupMap& map) {
  const bool ends = !break_even_ends(map).empty();
  if (!break_even_line(map).empty())
    return ends ? "break-even 1.0, dashed: its interval" : "break-even 1.0";
  const auto all = [&](bool above) {
    return std::ranges::all_of(map.speedup, [&](const auto& row) {
      return std::ranges::none_of(row,
                                  [&](double s) { return std::isfinite(s) && (s > 1) != above; });
    });
  };
  return fmt::format("no break-even here{}{}",
                     all(true)    ? ": above 1.0"
                     : all(false) ? ": below 1.0"
                                  : "",
                     ends ? ", dashed: ends of intervals" : "");
}

std::string panel(const SpeedupMap& map, std::size_t block, const std::string& name,
                  double spread) {
  const std::vector<double> x = cell_borders(map.nic_Gbps), y = cell_borders(map.gpus);
  std::string text = fmt::format(
      "  set xrange [{:.6g}:{:.6g}]\n  set yrange [{:.6g}:{:.6g}]\n  set xtics scale 0 {}\n"
      "  set ytics {}\n  set label 3 {} at graph 0,graph 1.17 left font ',14'\n",
      x.front(), x.back(), y.front(), y.back(), column_ticks(map.nic_Gbps, x),
      log_ticks(map.gpus, 10), script_text(map.title));
  const std::vector<Segment> line = break_even_line(map);
  std::string contour;
  text += fmt::format("  set label 4 {} at graph 1,graph 1.055 right font ',13'\n",
                      script_text(line_label(map)));
  if (!line.empty()) {
    contour = fmt::format(
        ", \\\n    '{0}.dat' index {1} using 1:2 with lines lw 5 lc rgb '#ffffff'"
        ", \\\n    '{0}.dat' index {1} using 1:2 with lines lw 2.5 lc rgb '#000000'",
        name, block + 1);
  }
  if (!break_even_ends(map).empty())
    contour += fmt::format(
        ", \\\n    '{0}.dat' index {1} using 1:2 with lines lw 3 lc rgb '#ffffff'"
        ", \\\n    '{0}.dat' index {1} using 1:2 with lines lw 1.5 dt '-' lc rgb '#000000'",
        name, block + (line.empty() ? 1 : 2));
  text += fmt::format(
      "  plot '{0}.dat' index {1} using 1:2:3:4:5:6:7 with boxxyerror fs solid 1 noborder "
      "lc palette{2}",
      name, block, contour);
  if (map.nic_Gbps.size() <= 12 && map.gpus.size() <= 10) {
    text += fmt::format(
        ", \\\n    '{}.dat' index {} using 8:9:(sprintf('%.2f', $7)):"
        "(abs(log($7)) > {:.6g} ? 0xffffff : 0x202020) with labels font ',12' "
        "textcolor rgb variable",
        name, block, 0.55 * std::log(spread));
  }
  return text + "\n  unset label\n";
}

}  // namespace

bool scan_possible(const Points& points) {
  std::unordered_map<double, double> bandwidth;  // first bandwidth of each GPU count
  return std::ranges::any_of(points, [&](const Point* p) {
    return !std::isnan(p->nic_Gbps) &&
           bandwidth.try_emplace(p->gpus, p->nic_Gbps).first->second != p->nic_Gbps;
  });
}

bool map_possible(const Points& points) {
  return scan_possible(points) && vary(points, &Point::gpus);
}

std::size_t largest_scan(const SpeedupMap& map) {
  for (std::size_t row = map.gpus.size(); row-- > 0;) {
    const auto& speedup = map.speedup[row];
    if (std::count_if(speedup.begin(), speedup.end(), [](double s) { return !std::isnan(s); }) > 1)
      return row;
  }
  return map.gpus.size();
}

SpeedupMap speedup_map(const Points& points, std::string title) {
  SpeedupMap map{
      std::move(title), values(points, &Point::nic_Gbps), values(points, &Point::gpus), {}, {}, {}};
  for (const double gpus : map.gpus) {
    std::vector<double>& row = map.speedup.emplace_back();
    std::vector<double>&low = map.low.emplace_back(), &high = map.high.emplace_back();
    for (const double nic : map.nic_Gbps) {
      const auto found = std::find_if(points.begin(), points.end(), [&](const Point* p) {
        return p->gpus == gpus && p->nic_Gbps == nic;
      });
      row.push_back(found == points.end() ? absent : (*found)->speedup);
      low.push_back(found == points.end() ? absent : (*found)->speedup_low);
      high.push_back(found == points.end() ? absent : (*found)->speedup_high);
    }
  }
  return map;
}

namespace {

// Returns the line on which `values` are 1; they are arranged like the speed-ups of the map.
std::vector<Segment> line_of_one(const SpeedupMap& map,
                                 const std::vector<std::vector<double>>& values) {
  if (values.empty()) return {};
  const std::vector<double> x = widened(map.nic_Gbps), y = widened(map.gpus);
  const auto log_value = [&](std::size_t row, std::size_t column) {
    const auto inside = [](std::size_t i, std::size_t count) {
      return std::clamp<std::size_t>(i, 1, count) - 1;
    };
    return std::log(values[inside(row, map.gpus.size())][inside(column, map.nic_Gbps.size())]);
  };
  std::vector<Segment> line;
  for (std::size_t r = 0; r + 1 < y.size(); ++r) {
    for (std::size_t c = 0; c + 1 < x.size(); ++c) {
      // Corners in order: bottom left, bottom right, top right, top left.
      const std::array<std::size_t, 4> cs = {c, c + 1, c + 1, c}, rs = {r, r, r + 1, r + 1};
      std::array<double, 4> v;
      for (std::size_t i = 0; i < 4; ++i) v[i] = log_value(rs[i], cs[i]);
      if (std::any_of(v.begin(), v.end(), [](double s) { return !std::isfinite(s); })) continue;
      std::vector<std::pair<double, double>> cuts;
      for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t j = (i + 1) % 4;
        if ((v[i] > 0) == (v[j] > 0)) continue;
        const double t = v[i] / (v[i] - v[j]);
        cuts.emplace_back(x[cs[i]] * std::pow(x[cs[j]] / x[cs[i]], t),
                          y[rs[i]] * std::pow(y[rs[j]] / y[rs[i]], t));
      }
      // Four cuts are a saddle; the mean of the corners decides which of them belong together.
      const bool turn = cuts.size() == 4 && ((v[0] + v[1] + v[2] + v[3] > 0) != (v[0] > 0));
      if (turn) std::rotate(cuts.begin(), cuts.begin() + 1, cuts.end());
      for (std::size_t i = 0; i + 1 < cuts.size(); i += 2) {
        line.push_back({cuts[i].first, cuts[i].second, cuts[i + 1].first, cuts[i + 1].second});
      }
    }
  }
  return line;
}

std::string lines_data(const std::vector<Segment>& lines, const char* what) {
  if (lines.empty()) return "";
  std::string text = "\n\n" + comment(what);
  for (const Segment& s : lines)
    text += fmt::format("{:.6g} {:.6g}\n{:.6g} {:.6g}\n\n", s.x0, s.y0, s.x1, s.y1);
  return text;
}

}  // namespace

std::vector<Segment> break_even_line(const SpeedupMap& map) {
  return line_of_one(map, map.speedup);
}

std::vector<Segment> break_even_ends(const SpeedupMap& map) {
  if (map.low == map.speedup && map.high == map.speedup) return {};
  std::vector<Segment> ends = line_of_one(map, map.low);
  const std::vector<Segment> high = line_of_one(map, map.high);
  ends.insert(ends.end(), high.begin(), high.end());
  return ends;
}

bool is_flat_row(const std::vector<double>& speedup) {
  constexpr double flat = 1.001;
  double low = std::numeric_limits<double>::infinity(), high = 0;
  int values = 0;
  for (const double s : speedup) {
    if (!std::isfinite(s)) continue;
    low = std::min(low, s);
    high = std::max(high, s);
    ++values;
  }
  return values > 1 && high <= low * flat;
}

std::vector<Crossing> crossings(const std::vector<double>& nic_Gbps,
                                const std::vector<double>& speedup) {
  std::vector<Crossing> found;
  if (is_flat_row(speedup)) return found;
  std::size_t last = speedup.size();  // the last column that has a value
  for (std::size_t i = 0; i < speedup.size(); ++i) {
    if (!std::isfinite(speedup[i])) continue;
    if (last < i && (speedup[last] > 1) != (speedup[i] > 1)) {
      const double a = std::log(speedup[last]), b = std::log(speedup[i]);
      found.push_back(
          {nic_Gbps[last] * std::pow(nic_Gbps[i] / nic_Gbps[last], a / (a - b)), a > b});
    }
    last = i;
  }
  return found;
}

namespace {

// Size of a map's frame in SVG pixels, and of half a number in a cell.
constexpr double frame_width_px = 0.755 * figure_width_px, frame_height_px = 228;
constexpr double half_number_width_px = 17, half_number_height_px = 8;

// Returns where the number of a cell is drawn: in the middle, or next to it where no line of
// `lines` crosses the number. `x` and `y` are the borders of all cells.
std::pair<double, double> number_place(const std::vector<double>& x, const std::vector<double>& y,
                                       std::size_t column, std::size_t row,
                                       const std::vector<Segment>& lines) {
  const double px = frame_width_px / std::log(x.back() / x.front()),
               py = frame_height_px / std::log(y.back() / y.front());
  const auto between = [](double low, double high, double share) {
    return low * std::pow(high / low, share);
  };
  // Returns how far the lines stay from the number, in half sizes of a number; below 1 they touch.
  const auto clearance = [&](double at_x, double at_y) {
    constexpr int samples = 24;
    double least = 1;
    for (const Segment& s : lines)
      for (int i = 0; i <= samples; ++i) {
        const double share = static_cast<double>(i) / samples;
        const double dx = px * std::log(between(s.x0, s.x1, share) / at_x),
                     dy = py * std::log(between(s.y0, s.y1, share) / at_y);
        least = std::min(least, std::max(std::abs(dx) / half_number_width_px,
                                         std::abs(dy) / half_number_height_px));
      }
    return least;
  };
  std::pair<double, double> best;
  double most = -1;
  for (const double share_x : {0.5, 0.27, 0.73})
    for (const double share_y : {0.5, 0.77, 0.23}) {
      const double at_x = between(x[column], x[column + 1], share_x),
                   at_y = between(y[row], y[row + 1], share_y);
      const double free = clearance(at_x, at_y);
      if (free > most) most = free, best = {at_x, at_y};
    }
  return best;
}

}  // namespace

std::string map_data(const std::vector<SpeedupMap>& maps, const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += comment(note);
  for (std::size_t m = 0; m < maps.size(); ++m) {
    const SpeedupMap& map = maps[m];
    const std::vector<double> x = cell_borders(map.nic_Gbps), y = cell_borders(map.gpus);
    if (m > 0) text += "\n\n";
    text += comment(map.title);
    text += comment("nic_bandwidth_Gbps gpus left right bottom top speedup number_x number_y");
    std::vector<Segment> lines = break_even_line(map);
    const std::vector<Segment> ends = break_even_ends(map);
    lines.insert(lines.end(), ends.begin(), ends.end());
    for (std::size_t r = 0; r < map.gpus.size(); ++r) {
      for (std::size_t c = 0; c < map.nic_Gbps.size(); ++c) {
        if (!std::isfinite(map.speedup[r][c])) continue;
        const auto [at_x, at_y] = number_place(x, y, c, r, lines);
        text +=
            fmt::format("{} {} {:.6g} {:.6g} {:.6g} {:.6g} {} {:.6g} {:.6g}\n", map.nic_Gbps[c],
                        map.gpus[r], x[c], x[c + 1], y[r], y[r + 1], map.speedup[r][c], at_x, at_y);
      }
    }
    text +=
        lines_data(break_even_line(map), "break-even line (speed-up 1): nic_bandwidth_Gbps gpus");
    text += lines_data(break_even_ends(map), "ends of its interval: nic_bandwidth_Gbps gpus");
  }
  return text;
}

std::string map_script(const std::vector<SpeedupMap>& maps, const std::string& name,
                       const std::string& title) {
  const int height = 44 + map_panel_px * static_cast<int>(maps.size());
  const double most = spread(maps);
  std::string body = fmt::format(
      "  set logscale x 10; set logscale y 2; set logscale cb 2\n  set cbrange [{:.6g}:{:.6g}]\n"
      "  set cbtics {}\n  set cblabel 'speed-up of the whole run' offset 0.5,0\n"
      "  set palette defined (0 '#8f3b00', 1.4 '#e08214', 2.5 '#fdc98a', 2.9 '#fdeedd', "
      "3 '#f7f7f7', 3.1 '#e3eef5', 3.5 '#a9cfe6', 4.6 '#4393c3', 6 '#0b3c78')\n"
      "  unset grid; set border 15 lc rgb '#404040'\n"
      "  set xlabel 'NIC bandwidth (Gbit/s)' offset 0,up\n",
      1 / most, most, colour_ticks(most));
  std::size_t block = 0;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const double top = 40 + map_panel_px * static_cast<double>(i);
    body += margins({0.085, 0.84, 1 - (top + 280) / height, 1 - (top + 52) / height});
    body += y_label("GPUs", 14.0 / figure_width_px);
    body += panel(maps[i], block, name, most);
    block +=
        1 + (break_even_line(maps[i]).empty() ? 0 : 1) + (break_even_ends(maps[i]).empty() ? 0 : 1);
  }
  return script(name, title, figure_width_px, height, body);
}

}  // namespace lambcast::report
