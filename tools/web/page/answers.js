// Draws the answers to the questions of a run.
"use strict";

(function () {
  const make = lambcast.make, number = lambcast.number;
  const place = function (id) { return document.getElementById(id); };
  let chart = null, map = null;

  // ---- words ----

  const ratio = function (r) {
    return number(Number(r.toPrecision(3))) + "x";
  };
  const within = function (r) {
    return r.speedup_low === null ? "" : " (" + r.speedup_low.toFixed(2) + " to " +
      r.speedup_high.toFixed(2) + "x)";
  };
  function duration(seconds) {
    const scales = [[86400, "days"], [3600, "h"], [60, "min"], [1, "s"]];
    const found = scales.find(function (s) { return seconds >= 2 * s[0]; }) || [1, "s"];
    return number(Number((seconds / found[0]).toPrecision(3))) + " " + found[1];
  }
  const gigabytes = function (bytes) { return number(Number((bytes / 1e9).toPrecision(4))) + " GB"; };
  const gbit = function (rate) { return number(Number(rate.toPrecision(3))) + " Gbit/s"; };

  const title = function (optimizer) {
    return lambcast.nameOf({ key: "optimizer", at: function () { return optimizer; } }, 0);
  };
  // Returns the optimizer of an answer, and its exchange if it is not the default.
  const nameOf = function (answer) {
    const exchange = answer.inputs.exchange;
    return title(answer.inputs.optimizer) + (exchange === "all_reduce" ? "" : " with " + exchange);
  };

  const verdicts = { yes: ["pays", "Compression pays"], no: ["loses", "Compression does not pay"],
    hardly: ["even", "No difference"], cannot_tell: ["open", "Not certain"],
    does_not_fit: ["loses", "Compression does not pay: it does not fit"],
    not_judged: ["open", "Not judged: the run compresses fewer than 5 % of its steps"] };

  // Returns the verdict of the run: a class, its words, and the sentence after them.
  lambcast.verdictOf = function (answers) {
    const one = answers.run.answer.run, kind = answers.run.answer.run.verdict;
    if (kind === null || kind === undefined)
      return ["open", "Nothing is compressed", "choose a 1-bit optimizer, or an exchange with fewer bits."];
    const words = verdicts[kind];
    if (kind === "does_not_fit" || !answers.run.answer.memory.fits)
      return verdicts.does_not_fit.concat("a GPU would need " +
        gigabytes(answers.run.answer.memory.peak_bytes_per_gpu) + ".");
    return words.concat("the run is " + one.speedup_vs_baseline.toFixed(2) + "x" + within(one) +
      " as fast as with " + title(one.baseline_optimizer) + " and all-reduce.");
  };

  // ---- the answers ----

  function showVerdict(answers) {
    const headline = place("verdict"), refused = answers.run.error;
    headline.classList.remove("stale");
    if (refused) {
      headline.className = "headline refused";
      headline.textContent = refused;
      return;
    }
    const said = lambcast.verdictOf(answers);
    headline.className = "headline " + said[0];
    headline.replaceChildren(make("b", {}, [said[1] + ":"]), " " + said[2]);
  }

  function tile(value, text) { return make("div", {}, [make("b", {}, [value]), make("span", {}, [text])]); }
  function breakEven(advice) {
    const at = advice.break_even_nic_bandwidth_Gbps, sure = advice.break_even_low_Gbps;
    const own = sure ? "; certain below " + gbit(sure) : "";
    if (at) return tile(gbit(at), "break-even: compression pays below this NIC bandwidth" + own);
    return tile(advice.pays_at_any_bandwidth ? "any" : "none", "NIC bandwidth at which it is expected to pay" + own);
  }
  function showNumbers(answers) {
    const tiles = [], compressed = answers.run.answer, plain = answers.plain && answers.plain.answer;
    if (compressed) {
      tiles.push(tile(duration(compressed.run.time_s), "a run with " + nameOf(compressed) + (compressed.run.cost_usd === null ? ""
        : ", " + number(Math.round(compressed.run.cost_usd)) + " USD")));
      if (plain && lambcast.isCompressed(answers.of)) tiles.push(tile(duration(plain.run.time_s), "a run with " + nameOf(plain)));
      if (answers.advice && answers.advice.answer && answers.advice.answer.judged && compressed.memory.fits)
        tiles.push(breakEven(answers.advice.answer));
      if (compressed.run.fused_speedup)
        tiles.push(tile(ratio(compressed.run.fused_speedup), "with fused kernels (--kernels fused)"));
    }
    place("numbers").replaceChildren.apply(place("numbers"), tiles);
    const found = compressed ? compressed.findings : [];
    place("notes").parentElement.hidden = found.length === 0;
    place("notes").replaceChildren.apply(place("notes"), found.map(function (f) {
      return make("div", { className: "note" }, [make("b", {}, [f.severity + ": "]), f.message]);
    }));
  }

  // Returns the points of the curve that have a run: {x, name, run, fits}.
  function pointsOf(answers) {
    return (answers.curve.answer || []).map(function (p) {
      return { x: parseFloat(p.value), name: p.value.replace(/^([0-9.]+)([%A-Z])/i, "$1 $2"), run: p.run, fits: p.fits,
        refused: p.refused };
    });
  }
  const hours = function (r) { return r.time_s / 3600; };
  const between = function (low, high, words) { return words(low) + " to " + words(high); };
  const dollars = function (value) { return number(value < 100 ? Number(value.toPrecision(3)) : Math.round(value)); };

  function drawCurve(answers, axis, all, isSpeedup) {
    const points = all.filter(function (p) { return p.run && p.fits && (!isSpeedup || p.run.speedup_low !== null); })
      .map(function (p) {
        const r = p.run;
        return isSpeedup ? { x: p.x, y: r.speedup_vs_baseline, low: r.speedup_low, high: r.speedup_high,
          words: function () { return [p.name, r.speedup_vs_baseline.toFixed(2) + "x" + within(r)]; } }
          : { x: p.x, y: hours(r), low: r.time_low_s / 3600, high: r.time_high_s / 3600,
            words: function () { return [p.name, duration(r.time_s)]; } };
      });
    const hidden = points.length < 2 || axis === lambcast.axes.cluster;
    place("curve").hidden = place("curve-words").hidden = hidden;
    if (hidden) return;
    const x = lambcast.axisOf(axis.title + (axis.unit ? ", " + axis.unit : ""), points.map(function (p) { return p.x; }));
    x.ticks = null;
    const y = lambcast.axisOf(isSpeedup ? "times as fast" : "hours of the run",
      points.flatMap(function (p) { return [p.low, p.high]; }).concat(isSpeedup ? 1 : []));
    y.tight = true;
    y.ticks = null;
    const series = { name: isSpeedup ? "speed-up" : "run", colour: lambcast.colours[0], points: points };
    const guides = [], ends = { y1: y.low / 100, y2: y.high * 100 };
    const breaks = isSpeedup ? lambcast.crossings(points, 1, x.log) : [];
    if (isSpeedup) guides.push({ kind: "dashes", x1: -1e9, x2: 1e9, y1: 1, y2: 1 });
    if (isSpeedup && x.log) Object.assign(guides[0], { x1: x.low / 10, x2: x.high * 10 });
    // The engine solves for the break-even; the points only enclose it.
    const solved = axis === lambcast.axes.nic && answers.advice && answers.advice.answer &&
      answers.advice.answer.break_even_nic_bandwidth_Gbps;
    if (solved && breaks.length === 1) breaks[0].x = solved;
    const at = function (value) { return number(Number(value.toPrecision(3))) + " " + axis.unit; };
    breaks.forEach(function (c) {
      guides.push(Object.assign({ kind: "dashes", x1: c.x, x2: c.x, line: 1, colour: lambcast.colours[1],
        text: "break-even " + at(c.x) }, ends));
    });
    const inputs = answers.run.answer && answers.run.answer.inputs;
    const own = inputs && { nic: inputs.nic_bandwidth_bytes_per_s * 8e-9, gpus: inputs.gpus, global_batch: inputs.global_batch,
      freeze_step: 100 * inputs.freeze_step / inputs.steps }[lambcast.axisNameOf(answers.of)];
    if (own) guides.push(Object.assign({ kind: "line", x1: own, x2: own, text: "here", line: 0 }, ends));
    if (!chart) chart = new lambcast.Chart(place("curve"), 320);
    chart.set({ series: [series], x: x, y: y, guides: guides });
    place("curve-words").textContent = "The band is the interval of the forecast." + (!isSpeedup ? "" : breaks.length > 0
      ? " Compression pays " + (breaks[0].falling ? "below" : "above") + " " + at(breaks[0].x) + "."
      : " It " + (points[0].y > 1 ? "pays" : "does not pay") + " by the expected times everywhere here.");
  }

  const verdictOf = function (p) { return p.fits ? p.run.verdict_words : "does not fit"; };
  // Returns the choices with each verdict, neighbours together.
  function rangesOf(axis, points) {
    const groups = [];
    points.filter(function (p) { return p.run; }).forEach(function (p) {
      const words = verdictOf(p), group = groups.at(-1);
      if (group && group.words === words) group.to = p.name;
      else groups.push({ words: words, from: p.name, to: p.name });
    });
    return "By " + axis.title + ": " + groups.map(function (g) {
      return g.words + " at " + (g.from === g.to ? g.from : g.from + " to " + g.to);
    }).join("; ") + ". ";
  }
  // Returns a sentence with the fastest and the cheapest choice.
  function bestOf(axis, points) {
    const some = points.filter(function (p) { return p.run && p.fits; });
    if (some.length === 0) return "";
    // Returns the first of those that differ from the least by less than 0.5 %.
    const least = function (all, key) {
      const best = Math.min.apply(null, all.map(function (p) { return p.run[key]; }));
      return all.find(function (p) { return p.run[key] <= 1.005 * best; });
    };
    const fastest = least(some, "time_s"), r = fastest.run;
    let words = "Fastest by " + axis.title + ": " + fastest.name + ", " + duration(r.time_s) + " a run (" +
      between(r.time_low_s, r.time_high_s, duration) + ").";
    const priced = some.filter(function (p) { return p.run.cost_usd !== null; });
    if (priced.length === 0) return words + " Give a price of a GPU hour to see dollars.";
    const cheapest = least(priced, "cost_usd");
    words += " Cheapest: " + cheapest.name + ", " + dollars(cheapest.run.cost_usd) + " USD a run.";
    return words + (priced.length < some.length ? " " + (some.length - priced.length) + " have no price." : "");
  }
  function showChoices(axis, points, isSpeedup) {
    const priced = points.some(function (p) { return p.run && p.run.cost_usd !== null; });
    const shown = axis === lambcast.axes.cluster ? points.slice().sort(function (a, b) {
      return (a.run && a.fits ? a.run.time_s : Infinity) - (b.run && b.fits ? b.run.time_s : Infinity);
    }) : points;
    const cells = function (tag, texts, bad) {
      return make("tr", bad ? { className: "bad" } : {}, texts.map(function (text) { return make(tag, {}, [text]); }));
    };
    const heads = [axis.title].concat(isSpeedup ? ["compression", "speed-up"] : [], ["run"], priced ? ["USD"] : []);
    const rows = shown.map(function (p) {
      const r = p.run;
      if (!r) return cells("td", [p.name, p.refused], true);
      if (!p.fits) return cells("td", [p.name, "does not fit"], true);
      return cells("td", [p.name].concat(isSpeedup ? [verdictOf(p), r.speedup_vs_baseline.toFixed(2) + "x" + within(r)] : [],
      [duration(r.time_s) + " (" + between(r.time_low_s, r.time_high_s, duration) + ")"],
      !priced ? [] : [r.cost_usd === null ? "" : dollars(r.cost_usd) + " (" + between(r.cost_low_usd, r.cost_high_usd, dollars) + ")"]));
    });
    rows.forEach(function (row) {
      if (row.className === "bad") row.lastChild.colSpan = heads.length - 1;
    });
    const open = place("choices").querySelector("details");
    place("choices").replaceChildren(make("details", { open: open ? open.open : true }, [
      make("summary", {}, ["Each choice: time" + (priced ? ", cost" : "") + (isSpeedup ? " and verdict" : "")]),
      make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "choices" }, [
        make("table", { className: "listing choices" }, [make("thead", {}, [cells("th", heads)]), make("tbody", {}, rows)])])]));
  }
  function showCurve(answers) {
    const axis = lambcast.axes[lambcast.axisNameOf(answers.of)], points = pointsOf(answers);
    const isSpeedup = lambcast.isCompressed(answers.of);
    place("axis-title").textContent = (isSpeedup ? "Speed-up" : "Time and cost") + " against";
    place("axis").value = lambcast.axisNameOf(answers.of);
    place("curve").parentElement.hidden = points.length === 0;
    const sorted = axis === lambcast.axes.cluster;
    // Runs of several batches have as many steps, so their times are not compared.
    place("best").textContent = (isSpeedup && !sorted ? rangesOf(axis, points) : "") +
      (axis === lambcast.axes.global_batch ? "" : bestOf(axis, points));
    drawCurve(answers, axis, points, isSpeedup);
    showChoices(axis, points, isSpeedup);
  }

  // Shows the speed-up by NIC bandwidth and GPUs, row by row as they are answered.
  function showMap(answers) {
    const axes = lambcast.mapAxes(answers.node);
    const rows = axes.y.map(function (gpus, row) {
      const found = answers["map" + row];
      return axes.x.map(function (rate, i) {
        const p = found && found.answer && found.answer[i];
        if (!p || !p.run || !p.fits || p.run.speedup_low === null) return null;
        const r = p.run;
        return { value: r.speedup_vs_baseline, untold: r.speedup_low <= 1 && r.speedup_high >= 1, words: function () {
          return [r.speedup_vs_baseline.toFixed(2) + "x" + within(r), gpus + " GPUs", rate + " Gbit/s"];
        } };
      });
    });
    // Rows without a run, such as those of a batch too small for the GPUs, are left out.
    const isShown = function (row) { return rows[row].some(Boolean); };
    const cells = rows.filter(function (_, row) { return isShown(row); });
    axes.y = axes.y.filter(function (_, row) { return isShown(row); });
    const values = cells.flat().filter(Boolean).map(function (c) { return c.value; });
    place("map").parentElement.hidden = cells.length < 2;
    if (cells.length < 2) return;
    const axisOf = function (label, all) {
      return Object.assign(lambcast.axisOf(label, all), { values: all, ticks: all, log: true, edges: lambcast.cellEdges(all, true) });
    };
    if (!map) map = new lambcast.Chart(place("map"), 320);
    map.set({ x: axisOf("NIC bandwidth, Gbit/s", axes.x), y: axisOf("GPUs", axes.y), cells: cells, level: 1,
      ends: lambcast.extent(values), figure: "speed-up" });
    place("map-words").textContent = "Blue pays, orange does not pay; the line is break-even. The interval of a crossed cell " +
      "holds 1. The batch and the other settings are those of the run.";
  }

  // Shows the inputs that move the time of the run most.
  function showInputs(answers) {
    const found = answers.inputs.answer;
    if (!found) { place("inputs-said").textContent = answers.inputs.error; return; }
    const percent = function (value) { return (value >= 0 ? "+" : "") + (10 * value).toFixed(1) + " %"; };
    const row = function (tag, cells) { return make("tr", {}, cells.map(function (cell) { return make(tag, {}, [cell]); })); };
    const rows = found.inputs.filter(function (i) { return Math.abs(i.time_elasticity) >= 0.005; }).slice(0, 10)
      .map(function (i) { return row("td", [i.name, i.value, percent(i.time_elasticity), i.kind]); });
    place("inputs-said").replaceChildren(make("p", {}, [found.answer]), make("div", { className: "scroll", tabIndex: 0,
      role: "region", "aria-label": "inputs" }, [make("table", { className: "listing" }, [make("thead", {},
      [row("th", ["10 % more of", "now", "changes the run by", "kind"])]), make("tbody", {}, rows)])]));
  }

  // Shows the steps of both runs, as rows of the report's picture of steps.
  function showBars(answers) {
    const rows = [answers.plain, answers.run].map(function (a) { return a && a.answer; })
      .filter(Boolean);
    if (rows.length === 2 && rows[0].inputs.optimizer === rows[1].inputs.optimizer &&
        rows[0].inputs.exchange === rows[1].inputs.exchange) rows.shift();
    const names = rows.map(nameOf);
    const column = { key: "run", label: "", at: function (row) { return names[row]; },
      place: function (row) { return row; }, number: function (row) { return row; } };
    const stages = { uniform: "", warmup: "warm-up", compression: "compressed", silent: "silent", refresh: "refresh" };
    const text = function (key, row) {
      const stage = rows[row].stages.find(function (s) { return key.startsWith(s.name + "_"); });
      return stage ? stage[key.slice(stage.name.length + 1)] / 1e3 : "";
    };
    lambcast.showBars({ parts: lambcast.parts, stages: Object.entries(stages), swept: [column], text: text,
      isCompressed: function () { return false; } }, rows.map(function (_, i) { return i; }), column, place("bars"));
    place("bars").parentElement.hidden = rows.length === 0;
  }

  // Shows the errors that make the interval wide, each with the measurement that narrows it.
  function showCertain(answers) {
    const advice = answers.advice && answers.advice.answer, one = answers.run.answer;
    const errors = advice && advice.errors || [];
    const certain = one && (one.run.verdict === "yes" || one.run.verdict === "no");
    place("certain-title").textContent = certain ? "What would narrow the interval"
      : "What would make this certain";
    const ends = lambcast.extent(errors.flatMap(function (e) { return [e.speedup_low, e.speedup_high]; })
      .concat([1]));
    const at = function (v) { return 100 * (v - ends[0]) / (ends[1] - ends[0] || 1) + "%"; };
    const rows = errors.slice(0, 4).map(function (e) {
      const range = make("i", { className: "extent" }), level = make("i", { className: "level" });
      range.style.left = at(e.speedup_low);
      range.style.right = 100 - parseFloat(at(e.speedup_high)) + "%";
      level.style.left = at(1);
      return make("div", { className: "range" }, [make("span", {}, ["Measure " + e.measure]),
        make("b", {}, [e.speedup_low.toFixed(2) + " to " + e.speedup_high.toFixed(2) + "x"]),
        make("div", { className: "track" }, [range, level])]);
    });
    if (rows.length === 0 && one && one.run.measure_first)
      rows.push(make("p", {}, ["Measure first: " + one.run.measure_first + "."]));
    else if (rows.length > 0) rows.push(make("p", { className: "caption" }, ["Each bar is the speed-up if only " +
      "this source of error is open. The dashed line is 1x."]));
    place("certain").replaceChildren.apply(place("certain"), rows);
    place("certain").parentElement.hidden = rows.length === 0 || !(one && one.memory.fits);
  }

  function showMemory(answers) {
    const both = [answers.run, answers.plain].map(function (a) { return a && a.answer; });
    if (!lambcast.isCompressed(answers.of)) both.pop();
    const shown = both.filter(Boolean);
    const keys = Array.from(new Set(shown.flatMap(function (r) { return Object.keys(r.memory.parts); })));
    const row = function (kind, cells) {
      return make("tr", {}, cells.map(function (cell, i) {
        return make(i === 0 ? "th" : kind, {}, [cell]);
      }));
    };
    const lines = keys.map(function (key) {
      return row("td", [key.replace(/_/g, " ")].concat(shown.map(function (r) {
        return r.memory.parts[key] ? gigabytes(r.memory.parts[key]) : "";
      })));
    });
    lines.unshift(row("th", ["a GPU"].concat(shown.map(nameOf))));
    lines.push(row("td", ["peak"].concat(shown.map(function (r) { return gigabytes(r.memory.peak_bytes_per_gpu); }))));
    const words = shown.map(function (r) {
      return gigabytes(r.memory.peak_bytes_per_gpu) + " with " + nameOf(r) + (r.memory.fits ? "" : ", which does not fit");
    }).join("; ") + ".";
    place("memory").replaceChildren(make("p", {}, [words]), make("details", {},
      [make("summary", {}, ["What it holds"]), make("table", { className: "parts" }, lines)]));
    place("memory").parentElement.hidden = shown.length === 0;
  }

  lambcast.show = { verdict: showVerdict, numbers: showNumbers, curve: showCurve, bars: showBars, certain: showCertain,
    memory: showMemory, map: showMap, inputs: showInputs };
  // Returns the canvas of the curve, or null.
  lambcast.drawnCurve = function () { return chart && chart.plot ? chart.plot.ctx.canvas : null; };
})();
