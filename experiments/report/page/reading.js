// Charts for readers who cannot see them. A canvas has a role and a label, arrow keys move from
// mark to mark and read it out, and a table below has the numbers.
"use strict";

(function () {
  const make = lambcast.make;
  const mostRows = 500;  // limit of the rows in a table below a chart; the exported file has all

  // Returns the marks of a chart as lines of {x, y, ..., words}: one line per series, or per row of
  // cells.
  lambcast.marksOf = function (spec) {
    const lines = !spec.cells ? spec.series.map(function (series) { return series.points; })
      : spec.cells.map(function (line, y) {
        return line.map(function (cell, x) {
          return cell && Object.assign({ x: spec.x.values[x], y: spec.y.values[y] }, cell);
        }).filter(Boolean);
      });
    return lines.filter(function (line) { return line.length > 0; });
  };

  // Returns the marks as records, the first of which holds the titles.
  lambcast.recordsOf = function (spec) {
    const x = spec.x.label || "x", y = spec.y.label || "y";
    if (spec.cells) return [[x, y, spec.figure || "value", "certain"]].concat(lambcast.marksOf(spec).flat()
      .map(function (m) { return [m.x, m.y, m.value, m.untold ? "no" : "yes"]; }));
    return [["line", x, y, "low", "high", "extrapolated"]].concat(spec.series.flatMap(function (series) {
      return series.points.map(function (p) {
        return [series.name, p.x, p.y, p.low ?? "", p.high ?? "", p.hollow ? "yes" : "no"];
      });
    }));
  };

  function labelOf(spec) {
    const lines = lambcast.marksOf(spec);
    const count = lines.reduce(function (sum, line) { return sum + line.length; }, 0);
    const from = function (key) {
      const each = lines.map(function (line) { return lambcast.extent(line.map(function (m) { return m[key]; })); });
      const ends = lambcast.extent(each.flat()).map(function (v) { return lambcast.number(Number(v.toPrecision(3))); });
      return (spec[key].label || key) + " from " + ends[0] + " to " + ends[1];
    };
    const what = spec.cells ? "Map of " + (spec.figure || "a figure") + " in " + count + " cells, "
      : "Chart of " + count + " points in " + lines.length + (lines.length === 1 ? " line, " : " lines, ");
    return what + from("x") + ", " + from("y") + ". Arrow keys read the marks.";
  }

  const keys = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [1, 0], ArrowDown: [-1, 0] };
  function readable(chart) {
    const canvas = chart.plot.ctx.canvas;
    Object.entries({ role: "img", "aria-label": labelOf(chart.spec), tabindex: "0" })
      .forEach(function (entry) { canvas.setAttribute(entry[0], entry[1]); });
    chart.words.setAttribute("role", "status");
    let at = null;
    canvas.addEventListener("keydown", function (event) {
      const by = keys[event.key], lines = by ? lambcast.marksOf(chart.spec) : [];
      if (event.key === "Escape") chart.words.hidden = true;
      if (lines.length === 0) return;
      event.preventDefault();
      if (at === null) at = [0, 0];
      else {
        at[0] = (at[0] + by[0] + lines.length) % lines.length;
        at[1] = Math.max(0, Math.min(at[1] + by[1], lines[at[0]].length - 1));
      }
      const mark = lines[at[0]][at[1]], u = chart.plot;
      const of = (chart.spec.series || []).find(function (series) { return series.points === lines[at[0]]; });
      const name = lines.length > 1 && of ? [of.name] : [];
      chart.say(u, mark.words().concat(name), u.valToPos(mark.x, "x"), u.valToPos(mark.y, "y"));
    });
    canvas.addEventListener("blur", function () { chart.words.hidden = true; });
  }

  // The table is filled when it is opened.
  function tableBelow(chart) {
    const open = chart.numbers && chart.numbers.open;
    if (chart.numbers) chart.numbers.remove();
    const details = chart.numbers = make("details", { className: "numbers-below" },
      [make("summary", {}, ["the numbers as a table"])]);
    details.addEventListener("toggle", function () {
      if (!details.open || details.querySelector("table")) return;
      const records = lambcast.recordsOf(chart.spec);
      const cell = function (tag, value) {
        return make(tag, { textContent: typeof value === "number" ? lambcast.number(value) : value });
      };
      const rows = records.slice(1, 1 + mostRows).map(function (record) {
        return make("tr", {}, record.map(function (value) { return cell("td", value); }));
      });
      details.append(make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "numbers" }, [
        make("table", { className: "listing" }, [
          make("thead", {}, [make("tr", {}, records[0].map(function (title) { return cell("th", title); }))]),
          make("tbody", {}, rows)])]));
      if (records.length - 1 > mostRows)
        details.append(make("p", { className: "caption" }, ["The first " + mostRows + " of " + (records.length - 1) + "."]));
    });
    details.open = open || false;
    chart.place.append(details);
  }

  // Call it after every drawing. The table belongs to the spec, and stays if only the width
  // changes.
  lambcast.makeReadable = function (chart) {
    readable(chart);
    if (chart.readableSpec === chart.spec) return;
    chart.readableSpec = chart.spec;
    tableBelow(chart);
  };
})();
