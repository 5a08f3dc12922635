// Style and script of a page. The script sorts the tables of class `listing` and filters long ones;
// without it they read the same. A table with data beside it (listing.h) it fills, by the hundred
// rows.
#pragma once

namespace lambcast::report {

inline constexpr const char* page_css = R"(
:root { --ink: #1c1c1c; --soft: #5a5a5a; --paper: #ffffff; --line: #d5d5d5; --note: #fff4d6;
  --accent: #0b5a8f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --soft: #b0b0b0; --paper: #16181c;
  --line: #3d4148; --note: #3f3410; --accent: #7cc4f2; } }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 "DejaVu Sans", Verdana, sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .8rem; }
h2 { font-size: 1.12rem; margin: 2.4rem 0 .6rem; }
.verdict { border-left: 4px solid var(--accent); padding: .1rem 0 .1rem 1rem; margin: 1em 0; }
.verdict p { margin: 0 0 .5em; }
.verdict p:last-child { margin: 0; }
.note { background: var(--note); padding: .5rem .8rem; border-radius: 4px; }
.note ul { margin: .2rem 0; }
figure { margin: 0; }
figure svg { display: block; width: 100%; max-width: 820px; height: auto; margin: 0 auto;
  background: #ffffff; border: 1px solid var(--line); border-radius: 6px; }
:is(circle, path, rect)[stroke-width] { stroke-width: .34; } /* marks of gnuplot, whose lines are groups */
figure svg text { font-family: "DejaVu Sans", Verdana, sans-serif; }
figcaption { margin: .5rem 0 0; font-size: .875rem; color: var(--soft); }
.file { font-family: "DejaVu Sans Mono", monospace; font-size: .8rem; white-space: nowrap; }
.scroll { overflow: auto; max-height: 32rem; border: 1px solid var(--line); }
table { border-collapse: collapse; font-size: .8rem; line-height: 1.35; }
th, td { padding: .2rem .45rem; text-align: left; vertical-align: top; }
.listing { white-space: nowrap; min-width: 100%; }
.listing thead th { position: sticky; top: 0; background: var(--paper);
  box-shadow: inset 0 -1px var(--line); }
.listing td.n { text-align: right; font-variant-numeric: tabular-nums; }
.listing tbody tr:nth-child(even) { background: color-mix(in srgb, var(--ink) 5%, transparent); }
.listing tr.bad td { color: var(--soft); font-style: italic; }
.listing tr.missed td { font-weight: bold; background: var(--note); }
.sums td, .sums th { text-align: right; }
.sums td:first-child, .sums th:first-child { text-align: left; }
.listing th button { all: unset; cursor: pointer; }
.listing th button:focus-visible { outline: 2px solid var(--accent); }
.listing th[aria-sort=ascending] button::after { content: " \25B2"; }
.listing th[aria-sort=descending] button::after { content: " \25BC"; }
.bar { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem; margin: 0 0 .5rem; }
.bar span, .bar button { font-size: .875rem; font-variant-numeric: tabular-nums; }
.bar button { font: inherit; cursor: pointer; padding: .1rem .7rem; color: var(--ink);
  background: var(--paper); border: 1px solid var(--line); border-radius: 4px; }
.filter { font: inherit; padding: .3rem .5rem; width: min(22rem, 95%); }
.facts { overflow-wrap: anywhere; }
.facts th { color: var(--soft); font-weight: normal; white-space: nowrap; }
.facts ul { margin: 0; padding-left: 1.1rem; }
@media print { :root { --ink: #000; --soft: #333; --paper: #fff; --line: #bbb; --note: #f4f4f4; }
  figure svg { max-width: 620px; }
  main { max-width: none; padding: 0; } body { font-size: 10.5pt; }
  section { break-inside: avoid; } .rows .scroll, .bar { display: none; }
  .scroll { overflow: visible; max-height: none; border: none; }
  .listing { white-space: normal; font-size: .6rem; }
  h2 { break-after: avoid; } }
)";

inline constexpr const char* page_script = R"(
(function () {
  var each = function (list, action) { return Array.prototype.map.call(list, action); };
  // A row is its cells, and its element once there is one.
  function standing(table) {
    return each(table.tBodies[0].rows, function (tr) {
      return { tr: tr, words: each(tr.cells, function (td) { return td.textContent; })
        .join(" ").toLowerCase(), cells: each(tr.cells, function (td) {
          var number = td.className === "n" && td.textContent !== "";
          return number ? parseFloat(td.textContent) : td.textContent;
        }) };
    });
  }
  function embedded(data) {
    var rows = [];
    for (var i = 0; i < data.rows; ++i) {
      rows.push({ cells: data.columns.map(function (column) {
        return column.names ? column.names[column.cells[i]] : column.cells[i];
      }) });
    }
    return rows;
  }
  function words(row) {
    if (row.words === undefined) row.words = row.cells.join(" ").toLowerCase();
    return row.words;
  }
  function element(row, state) {
    if (row.tr) return row.tr;
    row.tr = document.createElement("tr");
    row.cells.forEach(function (cell, i) {
      var td = row.tr.insertCell();
      td.textContent = cell;
      if (typeof cell === "number") td.className = "n";
      if (i === state && cell !== "ok") row.tr.className = "bad";
    });
    return row.tr;
  }
  each(document.querySelectorAll("table.listing"), function (table) {
    var data = table.parentNode.querySelector("script"), heads = table.tHead.rows[0].cells;
    var rows = data ? embedded(JSON.parse(data.textContent)) : standing(table);
    var state = each(heads, function (head) { return head.textContent; }).indexOf("status");
    var most = data ? 100 : rows.length, first = 0, view = rows;
    var bar = document.createElement("div"), place = document.createElement("span");
    function add(kind, words) {
      var made = bar.appendChild(document.createElement(kind));
      made.setAttribute("aria-label", words);
      return made;
    }
    function show() {
      var shown = view.slice(first, first + most), body = table.tBodies[0];
      body.textContent = "";
      shown.forEach(function (row) { body.appendChild(element(row, state)); });
      table.parentNode.scrollTop = 0;
      place.textContent = view.length === 0 ? "no row" : "rows " + (first + 1) + " to " +
        (first + shown.length) + " of " + view.length;
    }
    function step(name, sign, by) {
      var button = add("button", name);
      button.textContent = sign;
      button.addEventListener("click", function () {
        var to = first + by * most;
        if (to < 0 || to >= view.length) return;
        first = to;
        show();
      });
    }
    var filter = add("input", "show rows with all these words");
    filter.className = "filter";
    filter.type = "search";
    filter.placeholder = filter.getAttribute("aria-label");
    filter.addEventListener("input", function () {
      var wanted = filter.value.toLowerCase().split(/\s+/);
      view = rows.filter(function (row) {
        return wanted.every(function (w) { return words(row).indexOf(w) >= 0; });
      });
      first = 0;
      show();
    });
    if (rows.length > most) {
      step("previous rows", "\u2039", -1);
      bar.appendChild(place);
      step("next rows", "\u203a", 1);
    }
    bar.className = "bar";
    if (rows.length > 30) table.parentNode.parentNode.insertBefore(bar, table.parentNode);
    each(heads, function (head, column) {
      var button = document.createElement("button");
      button.textContent = head.textContent;
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () {
        var down = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        // Empty cells last, numbers before text; rows that say the same stay in their order.
        function rank(cell) { return cell === "" ? 2 : typeof cell === "number" ? 0 : 1; }
        rows.forEach(function (row, i) { row.place = i; });
        rows.sort(function (a, b) {
          var x = a.cells[column], y = b.cells[column];
          if (rank(x) !== rank(y)) return rank(x) - rank(y);
          return x === y ? a.place - b.place : (x < y ? -1 : 1) * down;
        });
        rows.forEach(function (row, i) { row.place = i; });
        view = view.slice().sort(function (a, b) { return a.place - b.place; });
        first = 0;
        show();
        each(heads, function (h) { h.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down > 0 ? "ascending" : "descending");
      });
    });
    if (data) show();
  });
})();
)";

}  // namespace lambcast::report
