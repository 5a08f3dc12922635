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

// Returns the head and heading of a page. Both arguments are plain text.
std::string page_start(std::string_view title, std::string_view heading);

// Returns a box with one paragraph per verdict, which are plain text.
std::string verdict_box(const std::vector<std::string>& verdict);

// Returns a section for each figure with a chart: the chart and its caption.
std::string figure_sections(const std::vector<Figure>& figures);

// Returns the end of a page, with the scripts that draw its charts, and that sort and filter its
// tables of class `listing`.
std::string page_end();

}  // namespace lambcast::report
