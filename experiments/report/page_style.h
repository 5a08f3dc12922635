// Style and script of a page. The script sorts the tables of class `listing`, and filters long
// ones; without it the page reads the same.
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
.filter { font: inherit; padding: .3rem .5rem; width: min(26rem, 95%); margin: 0 0 .5rem; }
.facts { overflow-wrap: anywhere; }
.facts th { color: var(--soft); font-weight: normal; white-space: nowrap; }
.facts ul { margin: 0; padding-left: 1.1rem; }
@media print { :root { --ink: #000; --soft: #333; --paper: #fff; --line: #bbb; --note: #f4f4f4; }
  figure svg { max-width: 620px; }
  main { max-width: none; padding: 0; } body { font-size: 10.5pt; }
  section { break-inside: avoid; } .rows .scroll, .filter { display: none; }
  .scroll { overflow: visible; max-height: none; border: none; }
  .listing { white-space: normal; font-size: .6rem; }
  h2 { break-after: avoid; } }
)";

inline constexpr const char* page_script = R"(
(function () {
  Array.prototype.forEach.call(document.querySelectorAll("table.listing"), function (table) {
    var body = table.tBodies[0];
    var rows = Array.prototype.slice.call(body.rows), words = rows.map(function (row) {
      return Array.prototype.map.call(row.cells, function (c) { return c.textContent; })
        .join(" ").toLowerCase();
    });
    var filter = document.createElement("input");
    filter.className = "filter";
    filter.type = "search";
    filter.placeholder = "show rows with all these words";
    filter.setAttribute("aria-label", filter.placeholder);
    filter.addEventListener("input", function () {
      var wanted = filter.value.toLowerCase().split(/\s+/);
      rows.forEach(function (row, i) {
        row.hidden = !wanted.every(function (w) { return words[i].indexOf(w) >= 0; });
      });
    });
    if (rows.length > 30) table.parentNode.parentNode.insertBefore(filter, table.parentNode);
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head, column) {
      var button = document.createElement("button");
      button.textContent = head.textContent;
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () {
        var down = head.getAttribute("aria-sort") === "ascending";
        var order = rows.map(function (row, i) {
          var text = row.cells[column].textContent, value = parseFloat(text);
          var numeric = row.cells[column].className === "n";
          return { row: row, i: i, empty: text === "", key: numeric ? value : text };
        });
        order.sort(function (a, b) {
          if (a.empty !== b.empty) return a.empty ? 1 : -1;
          if (a.key === b.key || a.empty) return a.i - b.i;
          return (a.key < b.key ? -1 : 1) * (down ? -1 : 1);
        });
        order.forEach(function (o) { body.appendChild(o.row); });
        Array.prototype.forEach.call(table.tHead.rows[0].cells, function (h) {
          h.removeAttribute("aria-sort");
        });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
      });
    });
  });
})();
)";

}  // namespace lambcast::report
