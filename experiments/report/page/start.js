// Starts the page: the explorer if it has rows, a chart if a figure has its data, and buttons on
// its tables.
"use strict";

(function () {
  const rows = document.getElementById("rows-data");
  if (rows) {
    const sweep = JSON.parse(rows.textContent);
    const data = new lambcast.Rows(sweep);
    data.thinning = sweep.thinning || "";
    lambcast.explorer = new lambcast.Explorer(data, document.getElementById("explorer"));
  }
  function said(axis, value) {
    if (axis.names.some(function (n) { return n.place === value; }) && axis.label === "") return null;
    if (axis.ratio) return axis.label + ": " + lambcast.number(100 * (value - 1)) + " %";
    return axis.label + ": " + lambcast.number(value) + axis.unit;
  }
  document.querySelectorAll("figure.chart").forEach(function (figure) {
    const chart = JSON.parse(figure.querySelector("script").textContent);
    const panels = figure.querySelector(".panels");
    if (chart.columns > 2) panels.classList.add("grid");
    chart.panels.forEach(function (panel, index) {
      const place = lambcast.make("div", { className: "panel" });
      if (panel.title) place.append(lambcast.make("h3", {}, [panel.title]));
      panels.append(place);
      panel.series.forEach(function (series) {
        series.points.forEach(function (point) {
          point.words = function () {
            return [point.text, series.name, said(panel.x, point.x), said(panel.y, point.y)]
              .filter(Boolean);
          };
        });
      });
      panel.silent = chart.columns > 2 && index > 0;
      new lambcast.Chart(place, panel.height).set(panel);
    });
  });
  document.querySelectorAll("table.listing:not(.virtual)").forEach(lambcast.standingTable);
  document.documentElement.classList.add("ready");
})();
