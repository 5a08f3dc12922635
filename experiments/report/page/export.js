// Exports a chart: SVG by the same drawing as on the screen, PNG, and its numbers as CSV.
"use strict";

(function () {
  const make = lambcast.make;

  function escaped(text) {
    return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
  }
  function rounded(value) { return String(Math.round(value * 100) / 100); }

  // The part of a canvas context that charts use. It writes SVG elements.
  class SvgContext {
    constructor(scale) {
      this.scale = scale;
      this.elements = [];
      this.clips = 0;
      this.path = "";
      this.state = { fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1, font: "", dash: [],
        textAlign: "left", textBaseline: "alphabetic", lineCap: "butt", clipped: "" };
      Object.keys(this.state).forEach((key) => {
        Object.defineProperty(this, key, { get: () => this.state[key], set: (value) => { this.state[key] = value; } });
      });
      this.kept = [];
    }
    save() { this.kept.push(Object.assign({}, this.state)); }
    restore() { this.state = this.kept.pop(); }
    setLineDash(dash) { this.dash = dash; }
    beginPath() { this.path = ""; }
    moveTo(x, y) { this.path += "M" + rounded(x) + " " + rounded(y); }
    lineTo(x, y) { this.path += "L" + rounded(x) + " " + rounded(y); }
    closePath() { this.path += "Z"; }
    rect(x, y, wide, high) {
      this.path += "M" + rounded(x) + " " + rounded(y) + "h" + rounded(wide) + "v" + rounded(high) + "h" + rounded(-wide) + "Z";
    }
    // Draws a whole circle; charts use no other arcs.
    arc(x, y, r) {
      const half = "a" + rounded(r) + " " + rounded(r) + " 0 1 1 ";
      this.path += "M" + rounded(x - r) + " " + rounded(y) + half + rounded(2 * r) + " 0" + half + rounded(-2 * r) + " 0Z";
    }
    clip() {
      const name = "clip" + (++this.clips);
      this.elements.push("<clipPath id=\"" + name + "\"><path d=\"" + this.path + "\"/></clipPath>");
      this.clipped = " clip-path=\"url(#" + name + ")\"";
    }
    put(element) { this.elements.push(element + this.clipped + "/>"); }
    alpha() { return this.globalAlpha < 1 ? " opacity=\"" + this.globalAlpha + "\"" : ""; }
    fill() { this.put("<path d=\"" + this.path + "\" fill=\"" + this.fillStyle + "\"" + this.alpha()); }
    stroke() {
      const dash = this.dash.length > 0 ? " stroke-dasharray=\"" + this.dash.map(rounded).join(" ") + "\"" : "";
      this.put("<path d=\"" + this.path + "\" fill=\"none\" stroke=\"" + this.strokeStyle + "\" stroke-width=\"" +
        rounded(this.lineWidth) + "\" stroke-linecap=\"" + this.lineCap + "\"" + dash + this.alpha());
    }
    fillRect(x, y, wide, high) {
      this.put("<rect x=\"" + rounded(Math.min(x, x + wide)) + "\" y=\"" + rounded(Math.min(y, y + high)) + "\" width=\"" +
        rounded(Math.abs(wide)) + "\" height=\"" + rounded(Math.abs(high)) + "\" fill=\"" + this.fillStyle + "\"");
    }
    size() { return parseFloat(this.font) || 12 * this.scale; }
    // The average width of DejaVu Sans.
    measureText(text) { return { width: 0.6 * this.size() * text.length }; }
    fillText(text, x, y, turned) {
      const anchor = { center: "middle", right: "end" }[this.textAlign] || "start";
      const shift = this.textBaseline === "middle" ? 0.35 * this.size() : 0;
      const turn = turned ? " transform=\"rotate(-90 " + rounded(x) + " " + rounded(y) + ")\"" : "";
      this.elements.push("<text x=\"" + rounded(x) + "\" y=\"" + rounded(y + shift) + "\" font-size=\"" + rounded(this.size()) +
        "\" fill=\"" + this.fillStyle + "\" text-anchor=\"" + anchor + "\"" + turn + this.clipped + ">" + escaped(text) + "</text>");
    }
  }

  // Draws grid, numbers and labels of both axes.
  function drawAxes(u, spec, context, look) {
    const box = u.bbox, scale = devicePixelRatio;
    [["x", u.axes[0], spec.x], ["y", u.axes[1], spec.y]].forEach(function ([name, axis, said]) {
      const flat = name === "x", values = axis._values || [];
      (axis._splits || []).forEach(function (split, i) {
        const at = u.valToPos(split, name, true);
        if (!values[i]) return;
        context.strokeStyle = look.line;
        context.lineWidth = scale;
        context.beginPath();
        context.moveTo(flat ? at : box.left, flat ? box.top : at);
        context.lineTo(flat ? at : box.left + box.width, flat ? box.top + box.height : at);
        context.stroke();
        context.fillStyle = look.ink;
        context.textAlign = flat ? "center" : "right";
        context.textBaseline = flat ? "alphabetic" : "middle";
        context.fillText(values[i], flat ? at : box.left - 8 * scale, flat ? box.top + box.height + 18 * scale : at);
      });
      context.textAlign = "center";
      context.textBaseline = "alphabetic";
      if (flat) context.fillText(said.label, box.left + box.width / 2, box.top + box.height + 40 * scale);
      else context.fillText(said.label, 14 * scale, box.top + box.height / 2, true);
    });
  }

  // Draws bands, then lines; on a screen uPlot itself draws these.
  function drawLines(u, spec, context, visible) {
    const place = function (p, field) { return [u.valToPos(p.x, "x", true), u.valToPos(p[field], "y", true)]; };
    const trace = function (spots) {
      spots.forEach(function (s, i) { context[i === 0 ? "moveTo" : "lineTo"](s[0], s[1]); });
    };
    context.save();
    context.beginPath();
    context.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    context.clip();
    spec.series.forEach(function (series, index) {
      if (!visible(index) || spec.cloud) return;
      const banded = series.points.filter(function (p) { return typeof p.low === "number" && typeof p.high === "number"; });
      context.beginPath();
      trace(banded.map(function (p) { return place(p, "high"); })
        .concat(banded.slice().reverse().map(function (p) { return place(p, "low"); })));
      context.closePath();
      context.fillStyle = series.colour;
      context.globalAlpha = 0.17;
      if (banded.length > 1) context.fill();
      context.globalAlpha = 1;
      context.beginPath();
      trace(series.points.map(function (p) { return place(p, "y"); }));
      context.strokeStyle = series.colour;
      context.lineWidth = 2 * devicePixelRatio;
      context.setLineDash(series.dashes ? [8 * devicePixelRatio, 5 * devicePixelRatio] : []);
      context.stroke();
      context.setLineDash([]);
    });
    context.restore();
  }

  // Draws the names of lines below the picture, with their colours.
  function drawNames(spec, context, look, visible, top, wide) {
    const scale = devicePixelRatio;
    let x = 14 * scale, y = top + 16 * scale;
    context.textAlign = "left";
    context.textBaseline = "alphabetic";
    spec.series.forEach(function (series, index) {
      if (!visible(index)) return;
      const width = context.measureText(series.name).width + 34 * scale;
      if (x + width > wide) { x = 14 * scale; y += 18 * scale; }
      context.fillStyle = series.colour;
      context.fillRect(x, y - 9 * scale, 10 * scale, 10 * scale);
      context.fillStyle = look.ink;
      context.fillText(series.name, x + 15 * scale, y);
      x += width;
    });
    return y + 12 * scale;
  }

  const family = " \"DejaVu Sans\", Verdana, sans-serif";

  // Draws a text in lines of width `wide`; returns the height below the last line.
  function drawText(context, text, size, colour, top, wide) {
    const scale = devicePixelRatio, left = 14 * scale;
    if (!text) return top;
    context.font = size * scale + "px" + family;
    context.fillStyle = colour;
    context.textAlign = "left";
    context.textBaseline = "alphabetic";
    let line = "", y = top;
    const end = function () { y += 1.4 * size * scale; context.fillText(line, left, y); };
    text.split(" ").forEach(function (word) {
      const longer = line ? line + " " + word : word;
      if (line && context.measureText(longer).width > wide - 2 * left) { end(); line = word; } else line = longer;
    });
    end();
    return y + 0.4 * size * scale;
  }
  // Writes the texts around the drawing: title and slice above it, names of the lines and the
  // caption below. `body` draws at the height that it is given. Returns the total height.
  function drawFile(chart, look, about, context, body) {
    const spec = chart.spec, canvas = chart.plot.ctx.canvas;
    let y = drawText(context, about.title, 15, look.ink, 0, canvas.width);
    y = drawText(context, about.slice, 12, look.soft, y, canvas.width);
    body(y);
    y += canvas.height;
    context.font = 12 * devicePixelRatio + "px" + family;
    if ((spec.series || []).length > 1)
      y = drawNames(spec, context, look, function (index) { return !chart.hidden.has(index); }, y, canvas.width);
    return drawText(context, about.caption, 11, look.soft, y, canvas.width);
  }
  const nothing = { title: "", slice: "", caption: "" };

  // Returns the chart as drawn now; `look` has its colours, `about` its {title, slice, caption}.
  lambcast.svgOf = function (chart, look, about) {
    const canvas = chart.plot.ctx.canvas, scale = devicePixelRatio, context = new SvgContext(scale);
    const high = drawFile(chart, look, about || nothing, context, function (top) {
      context.elements.push("<g transform=\"translate(0 " + rounded(top) + ")\">");
      drawBody(chart, look, context);
      context.elements.push("</g>");
    });
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + rounded(canvas.width / scale) + "\" height=\"" +
      rounded(high / scale) + "\" viewBox=\"0 0 " + rounded(canvas.width) + " " + rounded(high) +
      "\" font-family=\"DejaVu Sans, Verdana, sans-serif\"><rect width=\"100%\" height=\"100%\" fill=\"" + look.back + "\"/>\n" +
      context.elements.join("\n") + "\n</svg>\n";
  };
  function drawBody(chart, look, context) {
    const u = chart.plot, spec = chart.spec, scale = devicePixelRatio;
    const visible = function (index) { return !chart.hidden.has(index); };
    const drawing = Object.create(u, { ctx: { value: context } });
    context.font = 12 * scale + "px";
    drawAxes(u, spec, context, look);
    (chart.hooks.drawAxes || []).forEach(function (draw) { draw(drawing); });
    if (spec.series) drawLines(u, spec, context, visible);
    (chart.hooks.draw || []).forEach(function (draw) { draw(drawing); });
  }

  // Returns the numbers as CSV (RFC 4180). A text that a spreadsheet would take for a formula gets
  // a quote before it.
  lambcast.csvOf = function (spec) {
    return lambcast.recordsOf(spec).map(function (record) {
      return record.map(function (value) {
        const text = typeof value === "number" ? String(value) : String(value).replace(/^(?=[=+\-@])/, "'");
        return /[",\n]/.test(text) ? "\"" + text.replace(/"/g, "\"\"") + "\"" : text;
      }).join(",") + "\n";
    }).join("");
  };

  lambcast.pngOf = function (chart, look, about) {
    const drawn = chart.plot.ctx.canvas, canvas = make("canvas", { width: drawn.width, height: 1 });
    const draw = function (body) { return drawFile(chart, look, about || nothing, canvas.getContext("2d"), body); };
    canvas.height = Math.ceil(draw(function () {}));
    const context = canvas.getContext("2d");
    context.fillStyle = look.back;
    context.fillRect(0, 0, canvas.width, canvas.height);
    draw(function (top) { context.drawImage(drawn, 0, Math.round(top)); });
    return canvas.toDataURL("image/png");
  };

  function save(name, address) {
    const link = make("a", { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
  }

  // Adds buttons below a chart that save it under `name`, with the texts of `about`. Pictures have
  // the colours of paper.
  lambcast.offerExport = function (chart, name, about) {
    const text = function (type, made) { return "data:" + type + ";charset=utf-8," + encodeURIComponent(made); };
    const kinds = { SVG: function (look) { return text("image/svg+xml", lambcast.svgOf(chart, look, about())); },
      PNG: function (look) { return lambcast.pngOf(chart, look, about()); },
      CSV: function () { return text("text/csv", lambcast.csvOf(chart.spec)); } };
    return make("p", { className: "links export" }, Object.keys(kinds).map(function (kind) {
      const button = make("button", { type: "button", textContent: "save " + kind });
      button.addEventListener("click", function () {
        lambcast.onPaper(chart, function (look) { save(name() + "." + kind.toLowerCase(), kinds[kind](look)); });
      });
      return button;
    }));
  };
})();
