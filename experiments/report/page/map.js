// Maps: a figure over two keys as coloured cells, and the line at which it has one value, such as
// break-even. Between the points the logarithm of the figure is linear in the logarithms of the
// keys, as in speedup_map.h.
"use strict";

(function () {
  // Returns borders half-way between neighbours, and as far beyond the outer values; in logarithms
  // if `log`.
  lambcast.cellEdges = function (values, log) {
    const to = log ? Math.log : Number, from = log ? Math.exp : Number;
    const at = values.map(function (v) { return to(v); });
    const step = at.length > 1 ? at[1] - at[0] : 1, last = at.length - 1;
    const end = at.length > 1 ? at[last] - at[last - 1] : 1;
    const edges = [at[0] - step / 2];
    for (let i = 1; i < at.length; ++i) edges.push((at[i - 1] + at[i]) / 2);
    edges.push(at[last] + end / 2);
    return edges.map(function (e) { return from(e); });
  };

  function mix(a, b, share) {
    return a.map(function (v, i) { return Math.round(v + (b[i] - v) * share); });
  }
  const gain = [0, 114, 178], loss = [213, 94, 0];
  function rgb(c) { return "rgb(" + c.join(",") + ")"; }
  function channels(colour) {
    const hex = colour.length === 4 ? colour.replace(/[0-9a-f]/gi, "$&$&") : colour;
    return [1, 3, 5].map(function (i) { return parseInt(hex.slice(i, i + 2), 16); });
  }

  // Returns blue above `level` and orange below it, stronger with the distance. Without a level the
  // colours go from light to blue.
  lambcast.cellColour = function (value, spec, back) {
    const paper = channels(back);
    if (spec.level === null) {
      const ends = spec.ends, all = Math.log(ends[1] / ends[0]) || 1;
      return rgb(mix(paper, gain, 0.12 + 0.8 * Math.log(value / ends[0]) / all));
    }
    const far = Math.max(Math.abs(Math.log(spec.ends[0] / spec.level)),
      Math.abs(Math.log(spec.ends[1] / spec.level)), 0.02);
    const away = Math.log(value / spec.level);
    return rgb(mix(paper, away >= 0 ? gain : loss, 0.06 + 0.86 * Math.abs(away) / far));
  };

  // Crosses out a cell whose value may be on either side of the level.
  function crossOut(context, left, right, low, high, look, scale) {
    context.save();
    context.globalAlpha = 0.35;
    context.strokeStyle = look.ink;
    context.lineWidth = scale;
    context.beginPath();
    context.moveTo(left, low);
    context.lineTo(right, high);
    context.moveTo(left, high);
    context.lineTo(right, low);
    context.stroke();
    context.restore();
  }

  // Calls draw(cell, colour, left, right, low, high) for every cell that has a value.
  function eachCell(u, spec, look, draw) {
    spec.cells.forEach(function (line, y) {
      line.forEach(function (cell, x) {
        if (!cell) return;
        draw(cell, lambcast.cellColour(cell.value, spec, look.back),
          u.valToPos(spec.x.edges[x], "x", true), u.valToPos(spec.x.edges[x + 1], "x", true),
          u.valToPos(spec.y.edges[y], "y", true), u.valToPos(spec.y.edges[y + 1], "y", true));
      });
    });
  }

  lambcast.drawCells = function (u, spec, look) {
    const context = u.ctx;
    context.save();
    eachCell(u, spec, look, function (cell, colour, left, right, low, high) {
      context.fillStyle = colour;
      context.fillRect(left, high, right - left + 0.5, low - high + 0.5);
      if (cell.untold) crossOut(context, left, right, low, high, look, devicePixelRatio);
    });
    context.restore();
  };

  const sizes = [11, 10, 9, 8];  // letter sizes of the numbers of a map, in pixels

  // Draws the numbers over the line of break-even, on the colour of their cells. All have the
  // largest size that fits every cell. Returns whether each cell got its number.
  lambcast.drawNumbers = function (u, spec, look, font) {
    const context = u.ctx, scale = devicePixelRatio, numbers = [];
    eachCell(u, spec, look, function (cell, colour, left, right, low, high) {
      const text = spec.level === null ? lambcast.number(Number(cell.value.toPrecision(3)))
        : cell.value.toFixed(2);
      numbers.push({ text: text, colour: colour, x: (left + right) / 2, y: (low + high) / 2,
        wide: right - left, high: low - high });
    });
    context.save();
    context.textAlign = "center";
    context.textBaseline = "middle";
    const fits = function (n, size) {
      return context.measureText(n.text).width <= n.wide - 2 * scale && n.high >= (size + 3) * scale;
    };
    const size = sizes.find(function (some) {
      context.font = some * scale + font.slice(2);
      return numbers.every(function (n) { return fits(n, some); });
    }) || sizes.at(-1);
    const shown = numbers.filter(function (n) { return fits(n, size); });
    shown.forEach(function (n) {
      const parts = n.colour.match(/\d+/g).map(Number);
      const light = 0.3 * parts[0] + 0.59 * parts[1] + 0.11 * parts[2] > 140;
      const half = Math.min(context.measureText(n.text).width / 2 + 2 * scale, n.wide / 2);
      context.fillStyle = n.colour;
      context.fillRect(n.x - half, n.y - 6 * scale, 2 * half, 12 * scale);
      context.fillStyle = light ? "#111" : "#fff";
      context.fillText(n.text, n.x, n.y);
    });
    context.restore();
    return shown.length === numbers.length;
  };

  // Marching squares over the points of a map. Returns pieces [x0, y0, x1, y1] of the line at
  // `level`. There is no line next to a missing point.
  lambcast.contour = function (xs, ys, values, level, logX, logY) {
    const pieces = [];
    function between(a, b, va, vb, log) {
      const share = Math.log(level / va) / Math.log(vb / va);
      return log ? a * Math.pow(b / a, share) : a + (b - a) * share;
    }
    for (let j = 0; j + 1 < ys.length; ++j) for (let i = 0; i + 1 < xs.length; ++i) {
      const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]];
      const at = corners.map(function (c) { return values[c[1]][c[0]]; });
      if (at.some(function (v) { return v === null; })) continue;
      const crossed = [];
      for (let k = 0; k < 4; ++k) {
        const l = (k + 1) % 4;
        if ((at[k] > level) === (at[l] > level)) continue;
        const a = corners[k], b = corners[l];
        crossed.push([between(xs[a[0]], xs[b[0]], at[k], at[l], logX),
          between(ys[a[1]], ys[b[1]], at[k], at[l], logY)]);
      }
      // At a saddle, the mean decides which corners belong together.
      if (crossed.length === 4) {
        const middle = Math.exp(at.reduce(function (s, v) { return s + Math.log(v); }, 0) / 4);
        if ((middle > level) !== (at[0] > level)) crossed.push(crossed.shift());
      }
      for (let k = 0; k + 1 < crossed.length; k += 2)
        pieces.push(crossed[k].concat(crossed[k + 1]));
    }
    return pieces;
  };

  lambcast.drawContour = function (u, spec, look) {
    if (spec.level === null) return;
    const values = spec.cells.map(function (line) {
      return line.map(function (cell) { return cell ? cell.value : null; });
    });
    const pieces = lambcast.contour(spec.x.values, spec.y.values, values, spec.level, spec.x.log,
      spec.y.log);
    const context = u.ctx;
    context.save();
    context.strokeStyle = look.ink;
    context.lineWidth = 2.5 * devicePixelRatio;
    context.lineCap = "round";
    context.beginPath();
    pieces.forEach(function (p) {
      context.moveTo(u.valToPos(p[0], "x", true), u.valToPos(p[1], "y", true));
      context.lineTo(u.valToPos(p[2], "x", true), u.valToPos(p[3], "y", true));
    });
    context.stroke();
    context.restore();
  };

  // Returns the places at which the line through points [{x, y}], with ascending x, crosses
  // `level`.
  lambcast.crossings = function (points, level, log) {
    const found = [];
    for (let i = 0; i + 1 < points.length; ++i) {
      const a = points[i], b = points[i + 1];
      if ((a.y > level) === (b.y > level)) continue;
      const share = Math.log(level / a.y) / Math.log(b.y / a.y);
      found.push({ x: log ? a.x * Math.pow(b.x / a.x, share) : a.x + (b.x - a.x) * share,
        falling: a.y > level });
    }
    return found;
  };
})();
