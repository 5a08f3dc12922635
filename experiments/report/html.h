// Parts common to all pages. A page is one file that loads nothing, so that it opens on machines
// without a network. Style and scripts are in page/, the chart library in uplot/. Text from files
// must be `escaped`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/report/drawing.h"

namespace lambcast::report {

std::string escaped(std::string_view text);

// Head and heading of a page: plain text.
std::string page_start(std::string_view title, std::string_view heading);

// A verdict by paragraph: plain text.
std::string verdict_box(const std::vector<std::string>& verdict);

// A section per figure that has a chart: it, and its caption.
std::string figure_sections(const std::vector<Figure>& figures);

// The end of a page, with the scripts that draw its charts, and sort and filter its tables of class
// `listing`.
std::string page_end();

}  // namespace lambcast::report
