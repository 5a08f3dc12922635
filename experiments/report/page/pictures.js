// From the rows of a slice (rows.js) to charts (chart.js), the text next to the pointer, and the
// bars of a step's parts. A sentence states what was left out or merged.
"use strict";

(function () {
  const make = lambcast.make;
  const mostSeries = 12, mostPanels = 4, mostBars = 12;

  const display = { lamb: "LAMB", onebit_lamb: "1-bit LAMB", adam: "Adam",
    onebit_adam: "1-bit Adam", zero_one_adam: "0/1 Adam", adamw: "AdamW", lars: "LARS",
    lion: "Lion",
    distributed_lamb: "distributed LAMB", adafactor: "Adafactor", came: "CAME",
    galore_adamw8bit: "GaLore with 8-bit AdamW" };
  lambcast.nameOf = function (column, row) {
    const value = column.at(row);
    if (value === "") return "no " + column.label;
    if (column.key === "optimizer") return display[value] || value;
    return column.numbers || column.key === "cuda_aware" || column.key === "overlap"
      ? column.label + " " + value : String(value);
  };

  // Describes a row: its settings, its forecast, and the sources of that forecast.
  function wordsOf(data, row, figure) {
    const ends = data.interval(figure, row);
    const lines = [lambcast.number(figure.at(row)) + " " + figure.label +
      (ends ? " (" + lambcast.number(ends[0]) + " to " + lambcast.number(ends[1]) + ")" : "")];
    data.swept.forEach(function (c) { lines.push(lambcast.nameOf(c, row)); });
    const speedup = data.text("speedup_vs_baseline", row);
    if (figure.key !== "speedup_vs_baseline" && data.isCompressed(row) && speedup)
      lines.push(lambcast.number(speedup) + "x over " + data.text("baseline_optimizer", row));
    const cost = data.text("cost_source", row), basis = data.text("compute_basis", row);
    lines.push("costs: " + (cost || "not said") + (basis ? "; compute: " + basis : ""));
    const calibrated = data.text("communication_calibrated", row);
    if (calibrated !== "") lines.push("communication: " +
      (calibrated === "false" ? "extrapolated" : "inside what was calibrated"));
    return lines;
  }
  lambcast.wordsOf = wordsOf;

  function median(values) {
    const some = values.slice().sort(function (a, b) { return a - b; });
    return some[Math.floor((some.length - 1) / 2)];
  }
  function grouped(rows, keyOf) {
    const groups = new Map();
    rows.forEach(function (row) {
      const key = keyOf(row);
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(row);
    });
    return groups;
  }
  lambcast.grouped = grouped;

  // Returns the points of one line. If several rows share an x, their point is the median, with a
  // band from the least to the most.
  function pointsOf(data, rows, x, figure) {
    const places = grouped(rows, function (row) { return x.number(row); });
    let folded = 0;
    const points = Array.from(places, function (entry) {
      const some = entry[1], row = some[0];
      if (some.every(function (r) { return figure.at(r) === figure.at(row); })) {
        const ends = data.interval(figure, row);
        return { x: entry[0], y: figure.at(row), low: ends && ends[0], high: ends && ends[1],
          hollow: data.isExtrapolated(row), row: row,
          words: function () { return wordsOf(data, row, figure); } };
      }
      const values = some.map(function (r) { return figure.at(r); });
      const ends = lambcast.extent(values), middle = median(values);
      ++folded;
      return { x: entry[0], y: middle, low: ends[0], high: ends[1],
        hollow: some.every(function (r) { return data.isExtrapolated(r); }),
        words: function () {
          return [lambcast.number(middle) + " " + figure.label, "median of " + some.length +
            " rows, " + lambcast.number(ends[0]) + " to " + lambcast.number(ends[1]),
            x.label + " " + lambcast.number(entry[0])];
        } };
    });
    points.sort(function (a, b) { return a.x - b.x; });
    return { points: points, folded: folded };
  }

  function valuesText(column, places) {
    const shown = column.order.filter(function (place) { return places.has(place); })
      .map(function (place) { return column.names[place]; });
    return shown.length <= 4 || !column.numbers ? shown.slice(0, 4).join(", ") + (shown.length > 4 ? ", ..." : "")
      : shown[0] + " to " + shown.at(-1);
  }
  // Returns the rows with values that all lines have, so that lines are compared on equal terms.
  // The notes name these values or, if the lines share no value of a key, those of each line. Rows
  // to which a key does not apply stay.
  function alike(data, rows, x, by, notes) {
    if (!by) return rows;
    data.swept.filter(function (c) { return c !== x && c !== by; }).forEach(function (column) {
      const applies = function (row) { return column.at(row) !== "" && column.place(row) !== column.passes; };
      const lines = Array.from(grouped(rows.filter(applies), function (row) { return by.place(row); }).values(),
        function (some) {
          return { name: lambcast.nameOf(by, some[0]), places: new Set(some.map(function (r) { return column.place(r); })) };
        });
      const all = new Set(lines.flatMap(function (line) { return Array.from(line.places); }));
      const shared = new Set(Array.from(all).filter(function (place) {
        return lines.every(function (line) { return line.places.has(place); });
      }));
      if (shared.size === all.size) return;
      if (shared.size === 0) {
        notes.push("The lines differ in " + column.label + ": " + lines.map(function (line) {
          return line.name + " has " + valuesText(column, line.places);
        }).join("; ") + ".");
        return;
      }
      rows = rows.filter(function (row) { return !applies(row) || shared.has(column.place(row)); });
      notes.push("Compared at " + column.label + " " + valuesText(column, shared) + ", which all lines have; the rows have " +
        valuesText(column, all) + ".");
    });
    return rows;
  }

  // Returns {spec, notes} of a figure over `x` with a line for each value of `by`; rows that differ
  // in other keys are merged. Null if no line has two points.
  lambcast.linesOf = function (data, chosen, x, figure, by) {
    const notes = [];
    const rows = alike(data, chosen, x, by, notes);
    const inside = rows.filter(function (row) { return x.number(row) !== null; });
    const order = by ? by.order : [0];
    const groups = grouped(inside, function (row) { return by ? by.place(row) : 0; });
    const places = order.filter(function (place) { return groups.has(place); });
    if (places.length > mostSeries)
      notes.push("The first " + mostSeries + " of " + places.length + " lines.");
    let folded = 0, banded = false, hollow = false;
    const series = places.slice(0, mostSeries).map(function (place, index) {
      const some = groups.get(place), line = pointsOf(data, some, x, figure);
      folded += line.folded;
      line.points.forEach(function (p) {
        banded = banded || p.low !== null;
        hollow = hollow || p.hollow;
      });
      return { name: by ? lambcast.nameOf(by, some[0]) : figure.label, points: line.points,
        mixed: line.folded > 0, colour: lambcast.colours[index % lambcast.colours.length], dashes: index >= 8 };
    });
    const points = series.flatMap(function (s) { return s.points; });
    if (new Set(points.map(function (p) { return p.x; })).size < 2) return null;
    const level = figure.key === "speedup_vs_baseline" ? 1 : null;
    const heights = points.flatMap(function (p) { return [p.y, p.low ?? p.y, p.high ?? p.y]; });
    if (level !== null) heights.push(level);
    const spec = { x: lambcast.axisOf(x.label, points.map(function (p) { return p.x; })),
      y: lambcast.axisOf(figure.label, heights), series: series, guides: [] };
    spec.y.ticks = null;
    spec.y.tight = level !== null;
    if (level !== null) addBreakEven(spec, level, notes);
    addLevels(spec, data, rows, x, figure);
    if (folded > 0) notes.push("Where several rows of the slice share a place, the line is their " +
      "median and the band goes from the least to the most.");
    else if (banded) notes.push(/_step_time_us$/.test(figure.key) || data.ownEnds(figure)
      ? "The band is the interval of the forecast."
      : "The band is the interval of the steps, as if all erred together.");
    const marked = series.every(function (s) { return s.points.length <= lambcast.mostMarks; });
    if (hollow) notes.push((marked ? "Hollow marks: communication" : "Communication of some rows") +
      " extrapolates beyond what its cluster was calibrated on.");
    return { spec: spec, notes: notes };
  };

  // Adds reference levels for rows to which the key below does not apply, such as plain optimizers
  // without warm-up. There is one level per optimizer.
  function addLevels(spec, data, rows, x, figure) {
    const optimizer = data.column("optimizer");
    if (x.passes === null) return;
    const level = rows.filter(function (row) { return x.place(row) === x.passes; });
    grouped(level, function (row) { return optimizer.place(row); }).forEach(function (some) {
      const y = median(some.map(function (row) { return figure.at(row); }));
      spec.guides.push({ x1: spec.x.low - 1e3, x2: spec.x.high, y1: y, y2: y, kind: "dashes",
        text: lambcast.nameOf(optimizer, some[0]), above: true });
      spec.y.low = Math.min(spec.y.low, y);
      spec.y.high = Math.max(spec.y.high, y);
    });
  }

  // Returns the points whose interval contains the level, so that their side of it is not certain.
  function untold(series, level) {
    return series.points.filter(function (p) {
      return p.low !== null && p.low !== undefined && p.low <= level && p.high >= level;
    }).length;
  }
  // Describes a line that stays on one side of the level.
  function oneSide(series, level) {
    const all = series.points.length, open = untold(series, level);
    const pays = series.points.every(function (p) { return p.y > level; });
    if (open === 0) return pays ? " pays everywhere" : " does not pay anywhere";
    if (open === all) return ": not certain anywhere";
    return (pays ? " pays" : " does not pay") + " at " + (all - open) + " of " + all +
      " points, not certain at the others";
  }

  function addBreakEven(spec, level, notes) {
    spec.guides.push({ x1: spec.x.low / 10, y1: level, x2: spec.x.high * 10, y2: level,
      kind: "dashes" });
    if (!spec.x.log) Object.assign(spec.guides[0], { x1: spec.x.low - 1e3 * (spec.x.high + 1),
      x2: spec.x.high + 1e3 * (spec.x.high + 1) });
    const said = spec.series.filter(function (s) { return s.points.length > 1; }).map(function (s) {
      const index = spec.series.indexOf(s);
      // A median of unlike rows may cross the level although no row does.
      if (s.mixed) return s.name + ": no break-even, as its rows differ in more than " + spec.x.label;
      const found = lambcast.crossings(s.points, level, spec.x.log);
      found.forEach(function (c) {
        const at = lambcast.number(Number(c.x.toPrecision(3)));
        spec.guides.push({ x1: c.x, x2: c.x, y1: spec.y.low / 100, y2: spec.y.high * 100,
          kind: "dashes", colour: s.colour, text: at, line: index });
      });
      if (found.length === 0) return s.name + oneSide(s, level);
      const open = untold(s, level);
      return s.name + " breaks even at " + found.map(function (c) {
        return lambcast.number(Number(c.x.toPrecision(3))) + " (pays " +
          (c.falling ? "below" : "above") + ")";
      }).join(" and ") + (open === 0 ? ""
        : ", not certain at " + open + " of " + s.points.length + " points");
    });
    notes.unshift(said.join("; ") + ". Below the dashed line at 1.0 compression does not pay.");
  }

  // Returns a figure over `x` and `y`, one map for each value of `by` that has two or more values
  // of both.
  lambcast.mapsOf = function (data, rows, x, y, figure, by) {
    const groups = grouped(rows, function (row) { return by ? by.place(row) : 0; });
    const found = [];
    (by ? by.order : [0]).forEach(function (place) {
      if (!groups.has(place)) return;
      const spec = mapOf(data, groups.get(place), x, y, figure);
      if (spec) found.push({ title: by ? lambcast.nameOf(by, groups.get(place)[0]) : "",
        spec: spec });
    });
    const maps = found.slice(0, mostPanels), notes = [];
    if (maps.length === 0) return null;
    // All maps share one colour scale.
    const values = maps.flatMap(function (m) {
      return m.spec.cells.flat().filter(Boolean).map(function (c) { return c.value; });
    });
    maps.forEach(function (m) { m.spec.ends = lambcast.extent(values); });
    if (maps[0].spec.level !== null)
      notes.push("Blue pays, orange does not pay; the line is break-even, interpolated between the points.");
    if (maps.some(function (m) {
      return m.spec.cells.flat().some(function (c) { return c && c.untold; });
    })) notes.push("Where a cell is crossed out its interval holds 1: it is not certain there.");
    if (maps.some(function (m) { return m.spec.folded; }))
      notes.push("Where several rows of the slice share a cell, it shows their median.");
    if (found.length > maps.length)
      notes.push("The first " + maps.length + " of " + found.length + " maps.");
    return { maps: maps, notes: notes };
  };

  // Returns whether most of the rows' intervals contain the level.
  function isUntold(data, rows, figure, level) {
    const held = rows.filter(function (r) {
      const ends = data.interval(figure, r);
      return ends && ends[0] <= level && ends[1] >= level;
    }).length;
    return held > rows.length / 2;
  }

  function mapOf(data, rows, x, y, figure) {
    const inside = rows.filter(function (r) { return x.number(r) !== null && y.number(r) !== null; });
    const sorted = function (column) {
      return Array.from(new Set(inside.map(function (r) { return column.number(r); })))
        .sort(function (a, b) { return a - b; });
    };
    const xs = sorted(x), ys = sorted(y);
    if (xs.length < 2 || ys.length < 2 || xs.length > 120 || ys.length > 120) return null;
    const cells = ys.map(function () { return xs.map(function () { return null; }); });
    const places = grouped(inside, function (r) { return x.number(r) + " " + y.number(r); });
    const level = figure.key === "speedup_vs_baseline" ? 1 : null;
    let folded = false, full = 0;
    places.forEach(function (some) {
      const value = median(some.map(function (r) { return figure.at(r); }));
      if (!(value > 0)) return;
      folded = folded || some.some(function (r) { return figure.at(r) !== value; });
      ++full;
      cells[ys.indexOf(y.number(some[0]))][xs.indexOf(x.number(some[0]))] = { value: value,
        untold: level !== null && isUntold(data, some, figure, level),
        words: function () {
          return some.every(function (r) { return figure.at(r) === value; }) ? wordsOf(data, some[0], figure)
            : [lambcast.number(value) + " " + figure.label, "median of " + some.length + " rows"];
        } };
    });
    if (full < 4) return null;
    const axis = function (column, values) {
      const made = lambcast.axisOf(column.label, values);
      made.values = values;
      made.edges = lambcast.cellEdges(values, made.log);
      made.ticks = values;
      return made;
    };
    return { x: axis(x, xs), y: axis(y, ys), cells: cells, folded: folded, level: level,
      figure: figure.label };
  }

  // ---- where a step goes ----

  function barsOf(data, row) {
    const parts = data.parts.slice(0, -1), other = data.parts.at(-1);
    return data.stages.flatMap(function ([stage, called]) {
      const time = data.text(stage + "_step_time_us", row);
      if (typeof time !== "number") return [];
      const found = parts.map(function (part) {
        return { part: part, ms: data.text(stage + "_" + part[0] + "_us", row) || 0 };
      });
      const sum = found.reduce(function (s, p) { return s + p.ms; }, 0);
      if (time - sum > 1e-3 * time) found.push({ part: other, ms: time - sum });
      return [{ called: (called + " step").trim(), ms: time, long: Math.max(sum, time), row: row,
        parts: found.filter(function (p) { return p.ms > 0; }) }];
    });
  }

  // Returns the mean step of the plain run that a compressed row is compared with, if the slice has
  // no row of that plain optimizer. Its parts are unknown.
  function baselineBar(data, row, optimizers) {
    const baseline = data.text("baseline_optimizer", row), hours = data.text("run_time_s", row);
    const speedup = data.text("speedup_vs_baseline", row), steps = data.text("steps", row);
    if (!data.isCompressed(row) || !baseline || optimizers.has(baseline) || !(speedup > 0)) return [];
    const ms = hours * 3600e3 * speedup / steps;
    return [{ called: (display[baseline] || baseline) + " step", ms: ms, long: ms, row: row,
      whole: true, parts: [{ part: data.parts.at(-1), ms: ms }] }];
  }

  // Returns as many points as are drawn: all rows of evenly chosen values of x or, if one value has
  // many, some of its rows.
  function someOf(points, x) {
    if (points.length <= mostBars) return points;
    const places = Array.from(grouped(points, function (row) { return x ? x.number(row) : 0; }).values());
    const fitting = Math.floor(mostBars * places.length / points.length), whole = fitting >= 2;
    const from = whole ? places : points.map(function (row) { return [row]; });
    const count = whole ? fitting : mostBars;
    return Array.from({ length: count }, function (_, i) {
      return from[Math.round(i * (from.length - 1) / (count - 1))];
    }).flat();
  }

  // Draws the steps of a slice's rows as bars on one scale, into `place`; returns false if there
  // are none.
  lambcast.showBars = function (data, rows, x, place) {
    // Parts of a sweep may contain the same point; its bars are drawn once.
    const seen = new Set();
    const points = lambcast.sorted(rows, function (row) { return x ? x.number(row) : 0; }, false)
      .filter(function (row) {
        const point = data.swept.map(function (c) { return c.place(row); }).join();
        return !seen.has(point) && seen.add(point);
      });
    const chosen = someOf(points, x);
    const optimizers = new Set(points.map(function (row) { return data.text("optimizer", row); }));
    const bars = chosen.flatMap(function (row) {
      return baselineBar(data, row, optimizers).concat(barsOf(data, row));
    });
    place.replaceChildren();
    if (bars.length === 0) return false;
    const longest = Math.max.apply(null, bars.map(function (bar) { return bar.long; }));
    const telling = data.swept.filter(function (c) {
      return new Set(chosen.map(function (row) { return c.place(row); })).size > 1;
    });
    const used = data.parts.filter(function (part) {
      return bars.some(function (b) { return b.parts.some(function (p) { return p.part === part; }); });
    });
    place.append(make("div", { className: "keys" }, used.map(function (part) {
      const dot = make("i", { className: "dot square" });
      dot.style.background = part[2];
      return make("span", {}, [dot, part[1]]);
    })));
    let last = -1;
    bars.forEach(function (bar) {
      const label = telling.map(function (c) { return lambcast.nameOf(c, bar.row); }).join(", ");
      if (bar.row !== last && label) place.append(make("div", { className: "whose" }, [label]));
      last = bar.row;
      const track = make("div", { className: "stack" }, bar.parts.map(function (p) {
        const piece = make("i", { title: p.part[1] + " " + lambcast.number(p.ms) + " ms" });
        piece.style.background = p.part[2];
        piece.style.width = 100 * p.ms / longest + "%";
        return piece;
      }));
      place.append(make("div", { className: "step" }, [make("span", {}, [bar.called]),
        track, make("b", {}, [lambcast.number(bar.ms) + " ms"])]));
    });
    const notes = ["All bars are on one scale, of milliseconds."];
    if (chosen.length < points.length)
      notes.push(chosen.length + " of the " + points.length + " points of the slice, evenly.");
    if (bars.some(function (b) { return b.whole; }))
      notes.push("The plain step is its run's mean, by the speed-up: its parts are not in the rows.");
    if (bars.some(function (b) { return b.long > b.ms * 1.001; }))
      notes.push("Parts that overlap in time add up to more than their step.");
    place.append(make("p", { className: "caption" }, [notes.join(" ")]));
    return true;
  };
})();
