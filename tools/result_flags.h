// --format and --export of every command with an answer: a table for people, JSON and CSV for
// programs, on stdout and in any number of files.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace lambcast {

struct ResultFlags {
  std::string format = "table";
  std::vector<std::string> exports;
};

// Adds the flags and returns --format. With `pictures` a file may also be FILE.svg or FILE.png.
CLI::Option* add_result_flags(CLI::App& command, ResultFlags& flags,
                              const std::string& help = "table (the default), json or csv",
                              bool pictures = false);

struct ResultTexts {
  std::function<std::string()> table, json, csv;
  std::function<std::string(const std::string& ending)> picture = {};
};

// Writes only the files: for a command with other output on stdout. Throws Error (usage) if a file
// cannot be opened.
void write_exports(const ResultFlags& flags, const ResultTexts& texts);

// Prints the result and writes the files. Prints nothing if a file cannot be opened.
void print_result(const ResultFlags& flags, const ResultTexts& texts);

}  // namespace lambcast
