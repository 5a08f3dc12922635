// The parts that every page is made of: one file with nothing to load, so that it opens on machines
// without a network. Text that comes from files is to be `escaped`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/report/drawing.h"

namespace lambcast::report {

std::string escaped(std::string_view text);

// An SVG file as a part of an HTML page: ids made unique by `name`, no XML prologue.
std::string inline_svg(std::string_view svg, std::string_view name, std::string_view title);

// Head, heading and verdict (by paragraph) of a page, and a notice where there is one: all of them
// plain text.
std::string page_start(std::string_view title, std::string_view heading,
                       const std::vector<std::string>& verdict, std::string_view notice);

// A section per figure: its picture, or why there is none, and its caption.
std::string figure_sections(const std::vector<Drawing>& drawings);

// The end of a page, with the script that sorts its tables of class `listing` and filters long
// ones.
std::string page_end();

}  // namespace lambcast::report
