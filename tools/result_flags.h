// --format and --export of every command that answers: a table for people, JSON and CSV for
// programs, on stdout and in as many files as wanted by one call.
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

// Returns --format. With `pictures` a file may be FILE.svg or FILE.png too.
CLI::Option* add_result_flags(CLI::App& command, ResultFlags& flags,
                              const std::string& help = "table (the default), json or csv",
                              bool pictures = false);

struct ResultTexts {
  std::function<std::string()> table, json, csv;
  std::function<std::string(const std::string& ending)> picture = {};
};

// The files alone: for a command whose stdout carries something else. Throws Error (usage) where a
// file cannot be opened.
void write_exports(const ResultFlags& flags, const ResultTexts& texts);

// Nothing is printed where a file cannot be opened.
void print_result(const ResultFlags& flags, const ResultTexts& texts);

}  // namespace lambcast
