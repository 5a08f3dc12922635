// Drives a report's page in a browser (tools/page_test.sh appends it to the page) and checks it
// against results.csv, whose text is in `resultsCsv`. The results go into <pre id=checks>, one per
// line, beginning with "ok" or "FAILED".
/* global resultsCsv */
"use strict";

(function () {
  const lines = [];
  function check(what, passes, found) {
    lines.push((passes ? "ok " : "FAILED ") + what + (passes ? "" : ": " + JSON.stringify(found)));
  }
  function same(what, found, wanted) {
    const a = JSON.stringify(found), b = JSON.stringify(wanted);
    check(what, a === b, { found: a.slice(0, 300), wanted: b.slice(0, 300) });
  }

  // Parses CSV (RFC 4180). A cell that a spreadsheet would take for a formula has a quote before
  // it.
  function parse(text) {
    const records = [[""]];
    let quoted = false;
    for (let i = 0; i < text.length; ++i) {
      const c = text[i], record = records[records.length - 1];
      if (quoted && c === "\"" && text[i + 1] === "\"") { record[record.length - 1] += c; ++i; }
      else if (c === "\"") quoted = !quoted;
      else if (!quoted && c === ",") record.push("");
      else if (!quoted && c === "\n") records.push([""]);
      else if (c !== "\r" || quoted) record[record.length - 1] += c;
    }
    records.pop();
    const titles = records.shift();
    return records.map(function (record) {
      return Object.fromEntries(titles.map(function (t, i) {
        return [t, record[i].replace(/^'(?=[=+\-@])/, "")];
      }));
    });
  }
  // Reads the values of results.csv independently of the page's code.
  const units = { run_time_s: 3600, uniform_step_time_us: 1e3, warmup_step_time_us: 1e3,
    compression_step_time_us: 1e3, silent_step_time_us: 1e3, run_wire_bytes_per_gpu: 1e9,
    peak_bytes_per_gpu: Math.pow(2, 30) };
  const verdicts = { does_not_fit: "does not fit", not_judged: "not judged", yes: "pays",
    hardly: "no difference", no: "does not pay", cannot_tell: "not certain" };
  function inFile(row, key) {
    if (key in row) return row[key];
    const name = key.replace(/ file$/, "") + "=";
    const found = (row.settings || "").split("; ").find(function (s) { return s.startsWith(name); });
    return found ? found.slice(name.length) : "";
  }
  function share(row) {
    if (row.freeze_step === "") return "";
    const percent = row.freeze_step.endsWith("%") ? parseFloat(row.freeze_step)
      : 100 * Math.min(1, Math.max(0, (row.freeze_step - 1) / row.steps));
    return percent < 1 ? Number(percent.toPrecision(2)) : Math.round(10 * percent) / 10;
  }
  function asNumber(text) { return text !== "" && isFinite(Number(text)) ? Number(text) : text; }
  function expected(row, column) {
    if (column.key === "warmup_percent") return String(share(row));
    const said = inFile(row, column.key);
    if (column.key === "verdict") return verdicts[said] ?? said;
    if (column.kind !== "figure") return String(asNumber(said));
    return said === "" ? "" : Number(said) / (units[column.key] || 1);
  }

  const csv = parse(resultsCsv), explorer = lambcast.explorer, table = explorer.table;
  const scroll = document.querySelector("#rows .scroll");

  // Scrolls through the table and returns every row of it.
  function shownRows() {
    const found = new Map();
    for (let top = 0; ; top += 300) {
      scroll.scrollTop = top;
      scroll.dispatchEvent(new Event("scroll"));
      document.querySelectorAll("#rows tbody tr[aria-rowindex]").forEach(function (tr) {
        found.set(Number(tr.getAttribute("aria-rowindex")),
          Array.from(tr.cells, function (td) { return td.textContent; }));
      });
      if (top > scroll.scrollHeight) break;
    }
    return Array.from(found.entries()).sort(function (a, b) { return a[0] - b[0]; })
      .map(function (entry) { return entry[1]; });
  }
  function go(hash) {
    history.replaceState(null, "", "#" + hash);
    dispatchEvent(new HashChangeEvent("hashchange"));
  }
  // Checks that the rows on the screen are those of results.csv for which `wanted` holds, in their
  // order.
  function checkRows(what, wanted) {
    const rows = shownRows(), file = csv.filter(wanted);
    let wrong = null;
    rows.forEach(function (cells, i) {
      table.columns.forEach(function (column, c) {
        const want = file[i] ? expected(file[i], column) : null;
        const fits = typeof want === "number"
          ? Math.abs(Number(cells[c]) - want) <= 1e-3 * Math.abs(want) + 1e-12 : cells[c] === want;
        if (!fits && !wrong) wrong = { row: i, column: column.key, shown: cells[c], want: want };
      });
    });
    check(what + ": " + file.length + " rows", rows.length === file.length && wrong === null,
      { shown: rows.length, want: file.length, wrong: wrong });
  }
  function holds(slice) {
    return function (row) {
      return Object.entries(slice).every(function (entry) {
        const column = explorer.data.column(entry[0]);
        const said = expected(row, column);
        return said === entry[1] || (said === "" && entry[0] === "warmup_percent");
      });
    };
  }
  function visible(element) { return element.getClientRects().length > 0; }

  function slices() {
    go("x=gpus");
    checkRows("no slice", function () { return true; });
    explorer.data.swept.forEach(function (column) {
      column.names.forEach(function (name) {
        const slice = Object.fromEntries([[column.key, String(name)]]);
        go(new URLSearchParams(slice).toString());
        checkRows("slice " + column.key + " = " + name, holds(slice));
      });
    });
    const two = explorer.data.swept.slice(0, 3);
    two[0].names.forEach(function (a) {
      two[2].names.forEach(function (b) {
        const slice = Object.fromEntries([[two[0].key, String(a)], [two[2].key, String(b)]]);
        go(new URLSearchParams(slice).toString());
        checkRows("slice of two keys", holds(slice));
      });
    });
    go("gpus=8..16");
    checkRows("slice of a range", function (row) { return Number(row.gpus) <= 16; });
    check("some slice was checked", explorer.data.swept.length >= 4, explorer.data.swept.length);
  }

  // Rows of one point, as two parts of a sweep may have, must make one group of bars.
  function barsOnce() {
    const data = explorer.data, place = document.createElement("div");
    function bars(rows) {
      lambcast.showBars(data, rows, null, place);
      return place.querySelectorAll(".step").length;
    }
    const row = data.ok[0];
    check("a row has bars", bars([row]) > 0, bars([row]));
    same("a point has its bars once", bars([row, row]), bars([row]));
    // If there are many rows, some bandwidths are shown, each with all its rows.
    const nic = data.column("nic_bandwidth_Gbps");
    const scanned = data.matching({ optimizer: "onebit_lamb", cluster: "paper-edr100-v100",
      gpus: "64..256", global_batch: "65536", warmup_percent: "16.7" }, data.ok);
    lambcast.showBars(data, scanned, nic, place);
    const shown = new Map();
    place.querySelectorAll(".whose").forEach(function (whose) {
      const at = Number(/NIC \(Gbit\/s\) ([0-9.]+)/.exec(whose.textContent)[1]);
      shown.set(at, (shown.get(at) || 0) + 1);
    });
    check("some bandwidths have bars", shown.size > 1 && shown.size < 5, shown.size);
    shown.forEach(function (count, at) {
      same("bars of every row at " + at, count,
        scanned.filter(function (r) { return nic.number(r) === at; }).length);
    });
  }

  // A sweep from flags has no rows of the plain optimizer.
  function plainBar() {
    const data = explorer.data, place = document.createElement("div");
    const called = function (rows) {
      lambcast.showBars(data, rows, null, place);
      return Array.from(place.querySelectorAll(".step span"), function (s) { return s.textContent; });
    };
    const compressed = data.matching({ optimizer: "onebit_lamb" }, data.ok)[0];
    const plain = data.matching({ optimizer: "lamb" }, data.ok)[0];
    check("the plain step has a bar", called([compressed])[0] === "LAMB step", called([compressed]));
    same("one of its own has no other", called([compressed, plain])
      .filter(function (name) { return name === "LAMB step"; }).length, 0);
  }

  // Without a filter the rows differ in more keys than `x`, so there is no break-even.
  function noBreakEvenOfUnlikeRows() {
    const data = explorer.data, figure = data.column("speedup_vs_baseline");
    const unlike = lambcast.linesOf(data, data.matching({}, data.drawable(figure)),
      data.column("gpus"), figure, data.column("optimizer"));
    check("rows that differ in more break even nowhere", unlike.notes.join().includes("no break-even") &&
      !unlike.notes.join().includes("breaks even at"), unlike.notes);
  }

  function sortAndFilter() {
    go("x=gpus");
    const at = table.columns.findIndex(function (c) { return c.key === "run_samples_per_s"; });
    const button = document.querySelectorAll("#rows th button")[at];
    [1, -1].forEach(function (sign) {
      button.click();
      const values = shownRows().map(function (cells) { return cells[at]; });
      const numbers = values.filter(function (v) { return v !== ""; }).map(Number);
      check("sorted " + sign, numbers.every(function (v, i) {
        return i === 0 || sign * v >= sign * numbers[i - 1];
      }) && values.slice(numbers.length).every(function (v) { return v === ""; }), values);
    });
    const box = document.querySelector("#rows input.filter");
    box.value = "onebit infeasible";
    box.dispatchEvent(new Event("input"));
    const rows = shownRows();
    const want = csv.filter(function (r) {
      return r.optimizer.startsWith("onebit") && r.status.startsWith("infeasible");
    });
    check("filtered", rows.length === want.length && want.length > 0, [rows.length, want.length]);
    const address = location.hash;
    check("the address has order and filter", /sort=-run_samples_per_s/.test(address) &&
      /find=onebit/.test(address), address);
    go("x=gpus");
    check("a new address forgets both", shownRows().length === csv.length, 0);
    go(address.slice(1));
    same("an address brings back its rows", shownRows(), rows);
  }

  function views() {
    const chips = Array.from(document.querySelectorAll(".chips button"));
    check("there are views", chips.length >= 2, chips.length);
    chips.forEach(function (chip) {
      chip.click();
      check("view " + chip.textContent + " has a picture",
        visible(document.querySelector(".picture canvas")), 0);
      const state = structuredClone(explorer.state);
      go(location.hash.slice(1));
      same("its address gives the same state", explorer.state, state);
    });
    go(new URLSearchParams({ x: "nic_bandwidth_Gbps", y: "speedup_vs_baseline", by: "optimizer",
      map: "gpus", cluster: "paper-edr100-v100", gpus: "256", warmup_percent: "16.7" }).toString());
    const caption = document.querySelector("#explore .caption").textContent;
    const said = document.querySelector(".verdict").textContent;
    const bound = /LAMB over LAMB pays below ([0-9.]+) Gbit\/s(?: \([^)]*\))? on paper-edr100-v100 \(256/.exec(said);
    check("the line breaks even where the verdict says", bound !== null &&
      caption.includes("1-bit LAMB breaks even at " + bound[1] + " (pays below)"),
    [bound, caption]);
    check("a map of it is drawn", visible(document.querySelector("#maps canvas")), 0);
    const mapped = document.querySelector("#maps").textContent;
    const untold = csv.some(function (row) {
      return row.optimizer.startsWith("onebit") && row.cluster === "paper-edr100-v100" &&
        Number(row.speedup_low) <= 1 && Number(row.speedup_high) >= 1;
    });
    check("a map says where it is not certain", !untold || mapped.includes("it is not certain there"),
      mapped);
    check("a map has the number of each cell, or an open table of them", explorer.mapCharts.every(function (chart) {
      const texts = lambcast.svgOf(chart, { ink: "#000", line: "#ccc", back: "#fff", soft: "#444" });
      const cells = chart.spec.cells.flat().filter(Boolean);
      return chart.numbers.open || cells.every(function (c) { return texts.includes(">" + c.value.toFixed(2) + "<"); });
    }) || innerWidth >= 600, innerWidth);
    check("steps are drawn on one scale", Array.from(document.querySelectorAll("#steps .stack"))
      .every(function (stack) {
        const width = Array.from(stack.children).reduce(function (sum, piece) {
          return sum + parseFloat(piece.style.width);
        }, 0);
        return width > 0 && width <= 100.01;
      }) && visible(document.querySelector("#steps .stack")), 0);
  }

  // Lines are compared at values that all have. The plain optimizer ran only at the NIC bandwidth
  // of its cluster.
  function likeWithLike() {
    const data = explorer.data, rate = data.column("run_samples_per_s"), nic = data.column("nic_bandwidth_Gbps");
    const optimizer = data.column("optimizer");
    const found = lambcast.linesOf(data, data.drawable(rate), data.column("gpus"), rate, optimizer);
    const plain = new Set(data.matching({ optimizer: "lamb" }, data.ok).map(function (row) { return nic.at(row); }));
    const rows = found.spec.series.flatMap(function (s) { return s.points; })
      .filter(function (p) { return p.row !== undefined; }).map(function (p) { return nic.at(p.row); });
    check("lines have the bandwidths of all", plain.size < nic.names.length && rows.length > 0 &&
      rows.every(function (at) { return plain.has(at); }), rows);
    check("the caption says which", found.notes.join(" ").includes("Compared at NIC (Gbit/s) " +
      Array.from(plain).sort(function (a, b) { return a - b; }).join(", ") + ", which all lines have"), found.notes);
  }

  // The views open on the backend that is the fastest of equal points most often.
  function recommendedFirst() {
    const wins = {};
    const keys = ["optimizer", "cluster", "gpus", "global_batch", "freeze_step", "settings"];
    csv.filter(function (row) { return row.optimizer === "onebit_lamb" && row.status === "ok"; })
      .forEach(function (row, i, all) {
        const equals = all.filter(function (r) { return keys.every(function (key) { return r[key] === row[key]; }); });
        const slower = equals.filter(function (r) { return Number(r.run_samples_per_s) < Number(row.run_samples_per_s); });
        const some = new Set(equals.map(function (r) { return r.backend; })).size > 1;
        if (some && slower.length > 0 && slower.length === equals.filter(function (r) { return r.backend !== row.backend; }).length)
          wins[row.backend] = (wins[row.backend] || 0) + 1;
      });
    const best = Object.keys(wins).sort(function (a, b) { return wins[b] - wins[a]; })[0];
    const backend = explorer.data.column("backend");
    check("the recommended backend wins most", backend.names[explorer.data.recommended(backend)] === best, wins);
    check("no view opens on mpi", explorer.views.every(function (v) { return v.state.slice.backend !== "mpi"; }),
      explorer.views.map(function (v) { return v.state.slice; }));
  }

  // For any choice, there is a chart, or a sentence on what to change. The change must give a
  // chart.
  function emptied() {
    const nothing = document.querySelector("#explore .note");
    const wrong = [];
    let count = 0;
    explorer.figures.forEach(function (figure) {
      explorer.axes.forEach(function (x) {
        explorer.data.swept.filter(function (c) { return c !== x; }).forEach(function (column) {
          column.names.forEach(function (name) {
            explorer.state = { x: x.key, y: figure.key, by: "", map: "",
              slice: Object.fromEntries([[column.key, String(name)]]), sort: "", find: "" };
            explorer.show();
            const shown = !explorer.lines.hidden;
            count += shown ? 0 : 1;
            const says = visible(nothing) && /^No chart: .*; (set|choose|press|no other) .*\.$/.test(nothing.textContent);
            if (shown === visible(nothing) || says === shown) wrong.push([x.key, figure.key, name, nothing.textContent]);
          });
        });
      });
    });
    check("an emptied chart says so and what to change", count > 0 && wrong.length === 0, wrong.slice(0, 3));
  }

  function hover() {
    const plot = explorer.chart.plot, words = document.querySelector(".picture .words");
    const mark = explorer.chart.spec.series[0].points[0];
    plot.setCursor({ left: plot.valToPos(mark.x, "x"), top: plot.valToPos(mark.y, "y") });
    const found = words.hidden ? "" : words.textContent;
    check("the pointer shows what a mark is and rests on", /speed-up/.test(found) &&
      /costs: \w+/.test(found) && /communication: /.test(found), found);
  }

  // Use without a pointer or eyesight: role, label, focus, arrow keys and a table.
  function readable() {
    const canvases = Array.from(document.querySelectorAll("canvas")).filter(visible);
    check("canvases have role, label and focus", canvases.length > 1 && canvases.every(function (canvas) {
      return canvas.getAttribute("role") === "img" && canvas.tabIndex === 0 &&
        /\d+ (points in \d+ lines?|cells), .* from .* to .*/.test(canvas.getAttribute("aria-label"));
    }), canvases.map(function (c) { return c.getAttribute("aria-label"); }));
    const canvas = explorer.chart.plot.ctx.canvas, words = document.querySelector(".picture .words");
    const press = function (key) { canvas.dispatchEvent(new KeyboardEvent("keydown", { key: key })); };
    const points = explorer.chart.spec.series[0].points;
    press("ArrowRight");
    check("a key reads the first mark", words.textContent.includes(points[0].words()[0]), words.textContent);
    press("ArrowRight");
    check("the next key the next", !words.hidden && words.textContent.includes(points[1].words()[0]), words.textContent);
    press("Escape");
    check("a key ends it", words.hidden, 0);
    const details = document.querySelector(".picture .numbers-below");
    details.open = true;
    details.dispatchEvent(new Event("toggle"));
    const count = explorer.chart.spec.series.reduce(function (sum, s) { return sum + s.points.length; }, 0);
    same("a row of the table for each point", details.querySelectorAll("tbody tr").length, count);
    details.open = false;
  }

  // Checks the files that the buttons save, from a line chart and from a map.
  function exported() {
    const look = { ink: "#000", line: "#ccc", back: "#fff", soft: "#444" };
    [explorer.chart, explorer.mapCharts[0]].forEach(function (chart) {
      const spec = chart.spec, marks = lambcast.marksOf(spec).flat();
      const about = { title: "a title", slice: "a slice", caption: "a caption" };
      const svg = new DOMParser().parseFromString(lambcast.svgOf(chart, look, about), "image/svg+xml");
      const texts = Array.from(svg.querySelectorAll("text"), function (t) { return t.textContent; });
      check("an SVG is one", svg.querySelector("parsererror") === null && svg.documentElement.tagName === "svg" &&
        texts.includes(spec.x.label) && texts.includes(spec.y.label) && texts.length > 5, texts);
      check("it says what it is", Object.values(about).every(function (t) { return texts.includes(t); }) &&
        (spec.series || []).every(function (s, i, all) { return all.length < 2 || texts.includes(s.name); }), texts);
      const shapes = svg.querySelectorAll(spec.cells ? "rect" : "path").length;
      check("it has a shape for each mark", shapes > marks.length, [shapes, marks.length]);
      const records = lambcast.csvOf(spec).trim().split("\n"), titles = parse(records[0] + "\n" + records[0] + "\n")[0];
      same("a line of CSV for each mark", records.length, marks.length + 1);
      check("its titles are those of the axes", spec.x.label in titles && spec.y.label in titles, titles);
      const rows = parse(records.join("\n") + "\n");
      same("its numbers are whole", rows.map(function (r) { return Number(r[spec.x.label]); }),
        marks.map(function (m) { return m.x; }));
      const png = atob(lambcast.pngOf(chart, look, about).split(",")[1]);
      check("a PNG has its size", png.slice(1, 4) === "PNG" && png.length > 2000, png.length);
      const high = function (file) {
        return [20, 21, 22, 23].reduce(function (sum, at) { return 256 * sum + file.charCodeAt(at); }, 0);
      };
      const bare = high(atob(lambcast.pngOf(chart, look).split(",")[1]));
      check("and room for its words", high(png) >= bare + 50 && bare >= chart.plot.ctx.canvas.height, [high(png), bare]);
    });
    const saved = [];
    const click = HTMLAnchorElement.prototype.click;
    HTMLAnchorElement.prototype.click = function () { saved.push(this.download + " " + this.href.slice(0, 14)); };
    document.querySelectorAll("#explore .export button").forEach(function (button) { button.click(); });
    return drawn().then(function () {
      HTMLAnchorElement.prototype.click = click;
      same("three buttons save three files", saved, ["speedup_vs_baseline-nic_bandwidth_Gbps.svg data:image/svg",
        "speedup_vs_baseline-nic_bandwidth_Gbps.png data:image/png", "speedup_vs_baseline-nic_bandwidth_Gbps.csv data:text/csv;"]);
    });
  }

  function closedForms() {
    // z = x / y is 1 on the diagonal of any grid, so the ends of the line's pieces lie on it.
    const xs = [1, 2, 8, 16], ys = [3, 5, 7];
    const z = ys.map(function (y) { return xs.map(function (x) { return x / y; }); });
    const pieces = lambcast.contour(xs, ys, z, 1, true, true);
    check("contour of x / y", pieces.length === 2 && pieces.every(function (p) {
      return Math.abs(p[0] - p[1]) < 1e-9 && Math.abs(p[2] - p[3]) < 1e-9;
    }), pieces);
    const points = [1, 10, 100].map(function (x) { return { x: x, y: 5 / Math.sqrt(x) }; });
    const crossed = lambcast.crossings(points, 1, true);
    check("crossing of 5 / sqrt x", crossed.length === 1 && crossed[0].falling &&
      Math.abs(crossed[0].x - 25) < 1e-9, crossed);
    same("edges of cells", lambcast.cellEdges([1, 3, 5], false), [0, 2, 4, 6]);
    same("digits", [0, 1234567, 0.000123456, 12.3456, null].map(lambcast.number),
      ["0", "1234567", "0.0001235", "12.35", ""]);
  }

  function form() {
    check("no wider than the screen", document.documentElement.scrollWidth <= innerWidth,
      [document.documentElement.scrollWidth, innerWidth]);
    const empty = Array.from(document.querySelectorAll("section, figure, .panel")).filter(visible)
      .filter(function (e) { return e.textContent.trim() === "" && !e.querySelector("canvas"); });
    check("no empty box", empty.length === 0, empty.map(function (e) { return e.outerHTML; }));
    check("nothing of a name became an element", document.querySelectorAll("img").length === 0 &&
      window.owned === undefined, 0);
    check("the first screen has its answer", document.querySelector(".headline").textContent !== "" &&
      document.querySelectorAll(".numbers > div").length === 3 &&
      document.querySelectorAll(".range").length > 0, 0);
    dispatchEvent(new Event("beforeprint"));
    dispatchEvent(new Event("afterprint"));
    check("it is still drawn after printing", visible(document.querySelector(".picture canvas")), 0);
  }

  // uPlot draws asynchronously.
  function drawn() { return new Promise(function (done) { setTimeout(done, 200); }); }
  async function run() {
    await drawn();
    form();
    closedForms();
    slices();
    barsOnce();
    plainBar();
    noBreakEvenOfUnlikeRows();
    sortAndFilter();
    likeWithLike();
    recommendedFirst();
    emptied();
    views();
    await drawn();
    hover();
    readable();
    await exported();
  }
  run().catch(function (error) { lines.push("FAILED with " + error.stack); }).then(function () {
    document.body.append(lambcast.make("pre", { id: "checks" },
      [lines.join("\n") + "\nend of checks"]));
  });
})();
