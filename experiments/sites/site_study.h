// Compares published figures of training between sites with forecasts (published.csv).
//
// A figure is the share of time taken by communication, 1 - utilisation, or the seconds of one
// exchange. Links, steps and settings are those of the source; no parameter is fitted. A source
// with the time of the transfer instead of a link (INTELLECT-1) tests only the schedule.
//
// Resolution. Streaming DiLoCo and Eager print bandwidths of a scan in steps of ratio 1.207. The
// need lies between the printed point and the next one above: by table 1 of the former, 1e9 weights
// take 16.2 Gbit at 1 Gbit/s, so DiLoCo with H = 100 and steps of 0.1 s needs 1.61 Gbit/s for 50 %,
// 6.3 for 80 % and 13.8 for 90 %; table 4 prints 1.4, 6.2 and 13.3. `forecast` is at the middle of
// the step. A published share between the forecasts at both ends is met as closely as the source
// can tell.
//
// A figure is `possible` if the stated links can carry the stated bytes in the stated time, with
// the best overlap that the schedule allows. Others are listed, but they are not among the errors:
// no model of a link meets them. They, and figures whose source has no rate (NeMo's two sites),
// have the rate that the published share needs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"

namespace lambcast {

struct StudyFigure {
  std::string study, what, source;
  bool in_seconds = false;  // otherwise a share of time
  double published = 0;
  double forecast = 0;       // in the middle of a step of the grid
  double forecast_low = 0;   // at the next bandwidth of the grid; as `forecast` without a grid
  double forecast_high = 0;  // at the printed bandwidth
  bool possible = true;
  bool has_rate = true;               // without one there is no forecast
  std::optional<Bandwidth> needed{};  // up and down at each site
  // Errors of an exact model if the needed bandwidth may be anywhere in the step of the grid.
  std::vector<double> grid_errors{};
  double error() const;  // relative error
  double error_beyond_grid() const;
};

// Returns the figures of a study, or of all studies. Throws Error (usage) for an unknown study.
std::vector<StudyFigure> site_study(const std::string& study = {});

// Returns the possible figures that have a forecast, of a study or of all studies.
std::vector<StudyFigure> possible_figures(const std::vector<StudyFigure>& figures,
                                          const std::string& study = {});

// Returns a line for each figure, then the errors by study and over all.
std::string site_study_table(const std::vector<StudyFigure>& figures);

}  // namespace lambcast
