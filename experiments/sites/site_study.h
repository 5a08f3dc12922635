// Published figures of training between sites next to their forecasts (published.csv).
//
// A figure is the share of time that communication costs, 1 - utilisation, or the seconds of one
// exchange. Links, steps and settings are the source's; no parameter is fitted. A source that gives
// the time of the transfer in place of a link (INTELLECT-1) tests the schedule alone.
//
// Streaming DiLoCo and Eager give the least bandwidth on a grid of ratio 1.207 at which a
// utilisation is reached. The true need lies between a grid point and the one below, so a published
// share that lies between the forecasts at both is met. Other errors are those to the nearer of the
// two.
#pragma once

#include <string>
#include <vector>

namespace lambcast {

struct StudyFigure {
  std::string study, what, source;
  bool in_seconds = false;  // else a share of time
  double published = 0;
  double forecast = 0;       // at the source's bandwidth
  double forecast_high = 0;  // one grid point below; as `forecast` without a grid
  double error() const;      // relative, at the source's bandwidth
  double error_beyond_grid() const;
};

std::vector<StudyFigure> site_study();

// A line for each figure, then errors by study and over all.
std::string site_study_table(const std::vector<StudyFigure>& figures);

}  // namespace lambcast
