// Charts over uPlot: lines with bands and marks, clouds of marks, and maps with contours. A chart
// is redrawn if the width, the theme or the paper changes.
"use strict";

(function () {
  const make = lambcast.make;
  // The colours of Okabe and Ito (Color Universal Design, 2008), as in palette.cc.
  lambcast.colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F6A00",
    "#767676"];
  const shapes = ["circle", "square", "triangle", "diamond"];
  const mostMarks = lambcast.mostMarks = 4000;
  const font = "12px \"DejaVu Sans\", Verdana, sans-serif";

  const all = new Set();
  let paper = false;
  function theme() {
    if (paper) return { ink: "#000", line: "#ccc", back: "#fff", soft: "#444" };
    const style = getComputedStyle(document.documentElement);
    const of = function (name) { return style.getPropertyValue(name).trim(); };
    return { ink: of("--ink"), line: of("--line"), back: of("--paper"), soft: of("--soft") };
  }
  function drawAll() { all.forEach(function (chart) { chart.draw(); }); }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  addEventListener("beforeprint", function () { paper = true; drawAll(); });
  addEventListener("afterprint", function () { paper = false; drawAll(); });
  // Calls use(look) with the chart drawn in the colours of paper, as wide as on a page. uPlot draws
  // after the running script.
  lambcast.onPaper = function (chart, use) {
    paper = true;
    chart.draw();
    setTimeout(function () {
      use(theme());
      paper = false;
      chart.draw();
    });
  };

  // ---- scales ----

  // Returns 1, 2, 5, 10, ... from low to high; only powers of ten if those are many.
  function roundPlaces(low, high) {
    const some = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); ++power)
      [1, 2, 5].forEach(function (digit) {
        const place = digit * Math.pow(10, power);
        if (place >= low * 0.999 && place <= high * 1.001) some.push(Number(place.toPrecision(6)));
      });
    const tens = some.filter(function (p) { return Math.abs(Math.log10(p) % 1) < 1e-9; });
    return some.length > 9 && tens.length > 2 ? tens : some;
  }
  lambcast.roundPlaces = roundPlaces;

  function isLogarithmic(values) {
    const low = Math.min.apply(null, values), high = Math.max.apply(null, values);
    return low > 0 && high / low >= 8;
  }
  // A loop, since Math.min.apply overflows the stack on 10^5 values.
  function extent(values) {
    let low = Infinity, high = -Infinity;
    values.forEach(function (v) {
      if (v === null || !isFinite(v)) return;
      low = Math.min(low, v);
      high = Math.max(high, v);
    });
    return [low, high];
  }
  lambcast.extent = extent;
  lambcast.axisOf = function (label, values) {
    const ends = extent(values);
    const few = Array.from(new Set(values)).sort(function (a, b) { return a - b; });
    return { label: label, log: ends[0] > 0 && isLogarithmic(ends), low: ends[0], high: ends[1],
      ticks: few.length <= 12 ? few : null };
  };

  function range(axis, room) {
    const low = axis.low, high = axis.high;
    if (axis.log) {
      const by = Math.pow(high / low, room) * (high === low ? 1.5 : 1);
      return [low / by, high * by];
    }
    const by = (high - low || Math.abs(high) || 1) * room;
    return [low >= 0 && low < by * 4 && !axis.tight ? 0 : low - by, high + by];
  }

  // Returns the tick marks of `ticks` that do not touch the previous one.
  function apart(u, scale, ticks, pixels) {
    let last = -Infinity;
    return ticks.filter(function (tick) {
      const at = Math.abs(u.valToPos(tick, scale));
      if (Math.abs(at - last) < pixels) return false;
      last = at;
      return true;
    });
  }
  function uplotAxis(axis, side, look, wide) {
    const made = { scale: side === 2 ? "x" : "y", side: side, stroke: look.ink, font: font,
      grid: { stroke: look.line, width: 1 }, ticks: { stroke: look.line, width: 1, size: 5 },
      label: axis.label, labelFont: font, labelSize: 20, labelGap: 2, size: side === 2 ? 34 : wide };
    const names = new Map((axis.names || []).map(function (n) { return [n.place, n.text]; }));
    made.values = function (u, splits) {
      return splits.map(function (v) {
        return v === null ? "" : names.has(v) ? names.get(v) : lambcast.number(v);
      });
    };
    if (axis.log || axis.ticks || axis.names) {
      made.filter = function (u, splits) { return splits; };
      made.splits = function (u, index, low, high) {
        const inside = function (t) { return t >= low * 0.999999 && t <= high * 1.000001; };
        const ticks = axis.names ? axis.names.map(function (n) { return n.place; })
          : axis.ticks || roundPlaces(low, high);
        const text = side === 2 ? 9 + 7 * Math.max.apply(null, ticks.map(function (t) {
          return (names.get(t) || lambcast.number(t)).length;
        })) : 15;
        return apart(u, made.scale, ticks.filter(inside), text);
      };
    }
    return made;
  }
  function scaleOf(axis, room) {
    const ends = range(axis, room);
    return { time: false, distr: axis.log ? 3 : 1, auto: false, min: ends[0], max: ends[1],
      range: function (u, low, high) { return low === null ? ends : [low, high]; } };
  }

  // ---- marks ----

  function trace(context, shape, x, y, r) {
    context.beginPath();
    if (shape === "circle") context.arc(x, y, r, 0, 2 * Math.PI);
    else if (shape === "square") context.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8);
    else {
      const corners = shape === "triangle" ? [[0, -1.25], [1.15, 0.85], [-1.15, 0.85]]
        : [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]];
      corners.forEach(function (c, i) {
        context[i ? "lineTo" : "moveTo"](x + c[0] * r, y + c[1] * r);
      });
      context.closePath();
    }
  }
  function drawMarks(u, spec, look, visible) {
    const context = u.ctx, scale = devicePixelRatio;
    context.save();
    context.beginPath();
    context.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    context.clip();
    spec.series.forEach(function (series, index) {
      if (!visible(index) || series.points.length > mostMarks) return;
      context.strokeStyle = series.colour;
      context.lineWidth = 1.6 * scale;
      series.points.forEach(function (point) {
        const x = u.valToPos(point.x, "x", true), y = u.valToPos(point.y, "y", true);
        trace(context, shapes[(series.shape ?? index) % shapes.length], x, y,
          (spec.radius || 4) * scale);
        context.fillStyle = point.hollow ? look.back : series.colour;
        context.fill();
        context.stroke();
      });
    });
    context.restore();
  }
  function drawGuides(u, spec, look) {
    const context = u.ctx, scale = devicePixelRatio;
    const px = function (v) { return u.valToPos(v, "x", true); };
    const py = function (v) { return u.valToPos(v, "y", true); };
    context.save();
    context.beginPath();
    context.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    context.clip();
    (spec.guides || []).forEach(function (guide) {
      if (guide.kind === "area") {
        context.fillStyle = look.line + "66";
        context.fillRect(px(guide.x1), py(guide.y1), px(guide.x2) - px(guide.x1),
          py(guide.y2) - py(guide.y1));
        return;
      }
      context.beginPath();
      context.setLineDash(guide.kind === "dashes" ? [6 * scale, 5 * scale] : []);
      context.strokeStyle = guide.colour || look.soft;
      context.lineWidth = 1.3 * scale;
      context.moveTo(px(guide.x1), py(guide.y1));
      context.lineTo(px(guide.x2), py(guide.y2));
      context.stroke();
      if (!guide.text) return;
      context.fillStyle = look.ink;
      context.font = 12 * scale + font.slice(2);
      const wide = context.measureText(guide.text).width + 8 * scale;
      const right = px(guide.x2) + wide > u.bbox.left + u.bbox.width;
      context.textAlign = right ? "right" : "left";
      context.fillText(guide.text, px(guide.x2) + (right ? -5 : 5) * scale, guide.above
        ? py(guide.y2) - 5 * scale : u.bbox.top + (14 + 15 * (guide.line || 0)) * scale);
    });
    context.restore();
  }

  // ---- the chart ----

  // A box that its picture fills, and a text next to the pointer.
  class Chart {
    constructor(place, height) {
      this.place = place;
      this.height = height;
      this.box = make("div", { className: "plot" });
      this.words = make("div", { className: "words", hidden: true });
      this.hidden = new Set();
      place.append(this.box);
      all.add(this);
      this.width = 0;
      this.observer = new ResizeObserver(() => {
        if (Math.abs(this.box.clientWidth - this.width) > 1)
          requestAnimationFrame(() => this.draw());
      });
      this.observer.observe(this.box);
    }
    drop() {
      all.delete(this);
      this.observer.disconnect();
      if (this.plot) this.plot.destroy();
    }
    set(spec) {
      this.spec = spec;
      this.hidden.clear();
      this.draw();
    }
    draw() {
      const wide = paper ? 660 : this.box.clientWidth;
      if (!this.spec || wide < 40) return;
      this.width = this.box.clientWidth;
      if (this.plot) this.plot.destroy();
      const look = theme(), height = Math.min(this.height, Math.max(260, wide * 0.8));
      const options = this.spec.cells ? this.mapOptions(look, wide) : this.lineOptions(look, wide);
      this.plot = new uPlot(Object.assign({ width: wide, height: this.spec.height || height,
        legend: { show: false } }, options.options), options.data, this.box);
      this.hooks = options.options.hooks;
      this.plot.over.append(this.words);
      this.words.hidden = true;
      this.plot.over.addEventListener("mouseleave", () => { this.words.hidden = true; });
      this.legend();
      lambcast.makeReadable(this);
    }
    yWidth(wide) {
      const names = this.spec.y.names;
      if (!names) return 58;
      const longest = Math.max.apply(null, names.map(function (n) { return n.text.length; }));
      return Math.min(20 + 7 * longest, wide * 0.42);
    }
    lineOptions(look, wide) {
      const spec = this.spec, xs = [], places = new Map();
      spec.series.forEach(function (s) {
        s.points.forEach(function (p) { if (!places.has(p.x)) { places.set(p.x, 0); xs.push(p.x); } });
      });
      xs.sort(function (a, b) { return a - b; });
      xs.forEach(function (x, i) { places.set(x, i); });
      const data = [xs], series = [{}], bands = [];
      spec.series.forEach((s, index) => {
        const of = (field) => {
          const column = new Array(xs.length).fill(null);
          if (!spec.cloud) s.points.forEach((p) => { column[places.get(p.x)] = p[field] ?? null; });
          return column;
        };
        const show = !this.hidden.has(index);
        const plain = { scale: "y", spanGaps: true, points: { show: false }, show: show };
        data.push(of("y"), of("low"), of("high"));
        series.push(Object.assign({ stroke: s.colour, width: spec.cloud ? 0 : 2,
          dash: s.dashes ? [8, 5] : undefined }, plain), Object.assign({ width: 0 }, plain),
          Object.assign({ width: 0 }, plain));
        bands.push({ series: [3 * index + 3, 3 * index + 2], fill: s.colour + "2b" });
      });
      const hooks = {
        drawAxes: [(u) => drawGuides(u, spec, look)],
        draw: [(u) => drawMarks(u, spec, look, (index) => !this.hidden.has(index))],
        setCursor: [(u) => this.point(u)],
      };
      return { data: data, options: {
        scales: { x: scaleOf(spec.x, spec.room ?? 0.03), y: scaleOf(spec.y, spec.room ?? 0.06) },
        axes: [uplotAxis(spec.x, 2, look), uplotAxis(spec.y, 3, look, this.yWidth(wide))],
        series: series, bands: bands, hooks: hooks,
        cursor: { drag: { x: true, y: false }, points: { show: false }, y: false } } };
    }
    // Shows the description of the mark nearest to the pointer.
    point(u) {
      const left = u.cursor.left, top = u.cursor.top;
      let best = null, least = 30 * 30;
      if (left >= 0) this.spec.series.forEach((series, index) => {
        if (this.hidden.has(index)) return;
        series.points.forEach(function (p) {
          const dx = u.valToPos(p.x, "x") - left;
          if (dx * dx > least) return;
          const dy = u.valToPos(p.y, "y") - top, distance = dx * dx + dy * dy * 0.3;
          if (distance < least) { least = distance; best = { series: series, point: p }; }
        });
      });
      if (best === null) { this.words.hidden = true; return; }
      this.say(u, best.point.words(), u.valToPos(
        best.point.x, "x"), u.valToPos(best.point.y, "y"));
    }
    say(u, lines, x, y) {
      this.words.replaceChildren.apply(this.words, [].concat(lines).map(function (line, i) {
        return make(i === 0 ? "b" : "div", { textContent: line });
      }));
      this.words.hidden = false;
      const box = this.words.getBoundingClientRect(), over = u.over.getBoundingClientRect();
      this.words.style.left = Math.max(-40, Math.min(x + 14, over.width - box.width)) + "px";
      this.words.style.top = (y > box.height + 14 ? y - box.height - 12 : y + 14) + "px";
    }
    legend() {
      if (this.keys) this.keys.remove();
      const series = this.spec.series || [];
      // A cloud names its only series too: the name says whether its points were fitted.
      if (series.length < (this.spec.cloud ? 1 : 2) || this.spec.silent) return;
      const entries = series.map((s, index) => {
        const shape = shapes[(s.shape ?? index) % shapes.length];
        const dot = make("i", { className: "dot " + shape });
        const hollow = (s.points || []).length > 0 && s.points.every((p) => p.hollow);
        dot.style.background = hollow
          ? "radial-gradient(circle, transparent 38%, " + s.colour + " 42%)" : s.colour;
        const button = make("button", { type: "button", title: "show or hide" }, [dot, s.name]);
        button.setAttribute("aria-pressed", String(!this.hidden.has(index)));
        button.addEventListener("click", () => {
          if (!this.hidden.delete(index)) this.hidden.add(index);
          this.draw();
        });
        return button;
      });
      this.keys = make("div", { className: "keys" }, entries);
      this.place.insertBefore(this.keys, this.box);
    }

    // ---- maps: cells over two axes ----

    mapOptions(look, wide) {
      const spec = this.spec;
      const hooks = {
        draw: [(u) => {
          lambcast.drawCells(u, spec, look);
          lambcast.drawContour(u, spec, look);
          if (!lambcast.drawNumbers(u, spec, look, font)) this.openNumbers();
        }],
        setCursor: [(u) => this.pointCell(u)],
      };
      const ends = function (edges) { return [edges[0], edges[edges.length - 1]]; };
      const scale = function (axis) {
        const e = ends(axis.edges);
        return { time: false, distr: axis.log ? 3 : 1, auto: false, min: e[0], max: e[1],
          range: function () { return e; } };
      };
      return { data: [spec.x.values, spec.x.values.map(function () { return null; })], options: {
        scales: { x: scale(spec.x), y: scale(spec.y) },
        axes: [uplotAxis(spec.x, 2, look), uplotAxis(spec.y, 3, look, this.yWidth(wide))],
        series: [{}, { scale: "y" }], hooks: hooks,
        cursor: { drag: { x: false, y: false }, points: { show: false } } } };
    }
    // Opens the table below, which has the numbers that a narrow map has no room for. The user may
    // close it again.
    openNumbers() {
      if (innerWidth >= 600 || this.opened === this.spec || !this.numbers) return;
      this.opened = this.spec;
      this.numbers.open = true;
    }
    pointCell(u) {
      const spec = this.spec;
      const at = function (axis, value) {
        return axis.edges.findIndex(function (e, i) { return i > 0 && value < e; }) - 1;
      };
      const x = u.cursor.left < 0 ? -1 : at(spec.x, u.posToVal(u.cursor.left, "x"));
      const y = x < 0 ? -1 : at(spec.y, u.posToVal(u.cursor.top, "y"));
      const cell = y >= 0 && spec.cells[y][x];
      if (!cell) { this.words.hidden = true; return; }
      this.say(u, cell.words(), u.cursor.left, u.cursor.top);
    }
  }
  lambcast.Chart = Chart;
})();
