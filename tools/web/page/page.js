// Runs the page: sends questions to the engine in its Worker, keeps only the last question while
// one is being answered, and draws the answers.
"use strict";

(function () {
  const make = lambcast.make, number = lambcast.number;
  const place = function (id) { return document.getElementById(id); };
  const worker = new Worker(URL.createObjectURL(new Blob([place("worker").textContent],
    { type: "text/javascript" })));
  let controls = null, presets = null, chart = null;
  let asked = null, waiting = false, id = 0;
  const run = lambcast.runOf(location.hash.slice(1));

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
      if (plain && lambcast.isCompressed(run)) tiles.push(tile(duration(plain.run.time_s), "a run with " + nameOf(plain)));
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

  function showCurve(answers) {
    const points = (answers.curve && answers.curve.answer || []).filter(function (p) {
      return p.run && p.run.speedup_low !== null;
    }).map(function (p) {
      const x = parseFloat(p.value), r = p.run;
      return { x: x, y: r.speedup_vs_baseline, low: r.speedup_low, high: r.speedup_high,
        words: function () {
          return [gbit(x), r.speedup_vs_baseline.toFixed(2) + "x" + within(r)];
        } };
    });
    // A run that does not fit has no speed-up to show.
    const hidden = points.length < 2 || !(answers.run.answer && answers.run.answer.memory.fits);
    place("curve").parentElement.hidden = hidden;
    if (hidden) return;
    const own = answers.run.answer ? answers.run.answer.inputs.nic_bandwidth_bytes_per_s * 8e-9 : null;
    const x = lambcast.axisOf("NIC bandwidth, Gbit/s", points.map(function (p) { return p.x; }));
    x.ticks = null;
    const y = lambcast.axisOf("times as fast", points.flatMap(function (p) { return [p.low, p.high]; }).concat(1));
    y.tight = true;
    const series = { name: "speed-up", colour: lambcast.colours[0], points: points };
    const guides = [{ kind: "dashes", x1: x.low / 10, x2: x.high * 10, y1: 1, y2: 1 }];
    const breaks = lambcast.crossings(points, 1, true);
    // The engine solves for the break-even; the points only enclose it.
    const solved = answers.advice && answers.advice.answer && answers.advice.answer.break_even_nic_bandwidth_Gbps;
    if (solved && breaks.length === 1) breaks[0].x = solved;
    breaks.forEach(function (c) {
      guides.push({ kind: "dashes", x1: c.x, x2: c.x, y1: y.low / 100, y2: y.high * 100, line: 1,
        colour: lambcast.colours[1], text: "break-even " + gbit(c.x) });
    });
    if (own) guides.push({ kind: "line", x1: own, x2: own, y1: y.low / 100, y2: y.high * 100,
      text: "here", line: 0 });
    if (!chart) chart = new lambcast.Chart(place("curve"), 320);
    chart.set({ series: [series], x: x, y: y, guides: guides });
    place("curve-words").textContent = "The band is the interval of the forecast. " + (breaks.length > 0
      ? "Compression pays " + (breaks[0].falling ? "below" : "above") + " " + gbit(breaks[0].x) + "."
      : "It " + (points[0].y > 1 ? "pays" : "does not pay") + " by the expected times from 1 to 800 Gbit/s.");
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
    lambcast.showBars({ parts: presets.parts, stages: Object.entries(stages), swept: [column], text: text,
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
    if (!lambcast.isCompressed(run)) both.pop();
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

  // ---- asking ----

  function ask() {
    asked = Object.assign({}, run);
    place("command-text").textContent = lambcast.commandOf(run);
    if (waiting) { place("verdict").classList.add("stale"); return; }
    send();
  }
  function send() {
    const questions = lambcast.questionsOf(asked), names = Object.keys(questions);
    const sent = { id: ++id, files: lambcast.filesOf(asked), questions: Object.values(questions) };
    lambcast.names = names;
    asked = null;
    waiting = true;
    worker.postMessage(sent);
  }
  let later = 0;
  function keep() {
    clearTimeout(later);
    later = setTimeout(function () {
      history.replaceState(null, "", "#" + lambcast.addressOf(run));
    }, 300);
  }
  function answered(event) {
    waiting = false;
    lambcast.moduleBytes = event.data.bytes;
    if (asked !== null) { send(); return; }
    const answers = {};
    lambcast.names.forEach(function (name, i) { answers[name] = event.data.answers[i]; });
    lambcast.answers = answers;
    [showVerdict, showNumbers, showCurve, showBars, showCertain, showMemory].forEach(function (show) { show(answers); });
    document.documentElement.classList.add("ready");
    dispatchEvent(new Event("answered"));
  }

  worker.onmessage = function (event) {
    presets = event.data.answers[0].answer;
    place("version").textContent = "lambcast " + presets.version + ", forecast in this page: nothing leaves your machine.";
    controls = lambcast.controls = new lambcast.Controls(place("controls"), presets, run, function () {
      ask();
      keep();
    });
    worker.onmessage = answered;
    ask();
  };
  worker.onerror = function (event) { place("verdict").textContent = "The simulator does not start: " + event.message; };
  worker.postMessage({ id: 0, module: place("module").textContent, questions: [{ command: "presets" }] });
  addEventListener("hashchange", function () {
    Object.assign(run, lambcast.runOf(location.hash.slice(1)));
    controls.show();
    ask();
  });

  // ---- copying and saving ----

  async function copy(text, done) {
    try {
      await navigator.clipboard.writeText(text);
      place("done").textContent = done;
    } catch {
      place("command-text").textContent = text;
      getSelection().selectAllChildren(place("command-text"));
      place("done").textContent = "Selected below: press Ctrl+C.";
    }
  }
  place("command").addEventListener("click", function () { copy(lambcast.commandOf(run), "The command is copied."); });
  place("share").addEventListener("click", function () {
    copy(location.href.split("#")[0] + "#" + lambcast.addressOf(run), "The link is copied.");
  });
  place("picture").addEventListener("click", function () {
    if (!chart || !chart.plot) return;
    const drawn = chart.plot.ctx.canvas, picture = make("canvas", { width: drawn.width, height: drawn.height + 60 });
    const context = picture.getContext("2d"), style = getComputedStyle(document.body);
    context.fillStyle = style.backgroundColor;
    context.fillRect(0, 0, picture.width, picture.height);
    context.fillStyle = style.color;
    context.font = "bold 18px \"DejaVu Sans\", Verdana, sans-serif";
    context.fillText(place("verdict").textContent, 10, 26, picture.width - 20);
    context.font = "12px \"DejaVu Sans\", Verdana, sans-serif";
    context.fillText(lambcast.commandOf(run), 10, 48, picture.width - 20);
    context.drawImage(drawn, 0, 60);
    const link = make("a", { href: picture.toDataURL("image/png"), download: "lambcast.png" });
    link.click();
    place("done").textContent = "The picture is saved.";
  });
})();
