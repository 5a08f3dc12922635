// The rows of a sweep as the page contains them (listing.h): columns with cells, the swept keys,
// and the rows of a slice. Nothing here uses the document.
"use strict";
const lambcast = {};

(function () {
  // Splits "25GB/s" into 25 and the unit "GB/s"; a number has no unit.
  function quantity(name) {
    if (typeof name === "number") return { value: name, unit: "" };
    const found = /^\s*([-+]?[0-9.]+(?:e[-+]?[0-9]+)?)\s*([^0-9]*)$/i.exec(name);
    return found && isFinite(Number(found[1])) ? { value: Number(found[1]), unit: found[2] } : null;
  }

  // Cells of long columns are characters, encoded by packed_cells.h.
  const digits = new Uint8Array(128);
  for (let c = 35, next = 0; c < 127; ++c) if (c !== 60 && c !== 92) digits[c] = next++;
  function unpacked(text, width, cell) {
    return Array.from({ length: text.length / width }, function (_, row) {
      let value = 0;
      for (let i = row * width; i < (row + 1) * width; ++i)
        value = value * 90 + digits[text.charCodeAt(i)];
      return cell(value);
    });
  }
  function decimal(code, least, powers) {
    if (code < 2) return code === 0 ? null : 0;
    const power = Math.floor((code - 2) / 90000);
    const sign = power < powers ? "" : "-";
    return Number(sign + (10000 + (code - 2) % 90000) + "e" + (power % powers + least));
  }
  function cellsOf(spec) {
    if (spec.decimals)
      return unpacked(spec.decimals, spec.width, (code) => decimal(code, spec.least, spec.powers));
    if (!spec.packed) return spec.cells || null;
    return unpacked(spec.packed, spec.width, (place) => spec.values ? spec.values[place] : place);
  }

  class Column {
    constructor(spec) {
      this.key = spec.key;
      this.label = spec.label;
      this.kind = spec.kind;
      this.names = spec.names || null;
      this.cells = cellsOf(spec);
      this.same = spec.same;
      // Index of "does not apply", if the key has it. An optimizer without warm-up stays in a slice
      // of one share of warm-up, for comparison.
      const optional = spec.key === "warmup_percent" || spec.key === "freeze_step";
      const nothing = optional ? this.names.indexOf("") : -1;
      this.passes = nothing < 0 ? null : nothing;
    }
    place(row) { return this.cells ? this.cells[row] : this.same; }
    // Returns a text, a number, or null if a figure does not apply.
    at(row) {
      const cell = this.place(row);
      return this.names ? this.names[cell] : cell;
    }
    get differs() { return this.cells !== null; }
    // Returns the value of each name if all are numbers of one unit, else null.
    get numbers() {
      if (this.found === undefined) {
        const some = this.names.filter(function (name) { return name !== ""; }).map(quantity);
        const alike = some.length > 0 && some.every(function (q) {
          return q !== null && q.unit === some[0].unit;
        });
        this.unit = alike ? some[0].unit : "";
        this.found = !alike ? null : this.names.map(function (name) {
          return name === "" ? null : quantity(name).value;
        });
      }
      return this.found;
    }
    number(row) { return this.names ? this.numbers[this.place(row)] : this.at(row); }
    // Returns the indices of the names: numbers ascending, texts in the order of arrival.
    get order() {
      const places = this.names.map(function (name, place) { return place; });
      const numbers = this.numbers;
      if (numbers) places.sort(function (a, b) { return (numbers[a] ?? -1) - (numbers[b] ?? -1); });
      return places;
    }
  }

  // Formats a number with four digits; whole numbers are printed whole.
  lambcast.number = function (value) {
    if (value === null || value === undefined || !isFinite(value)) return "";
    if (Number.isInteger(value) || Math.abs(value) >= 1e4) return String(Math.round(value));
    return String(Number(value.toPrecision(4)));
  };

  // Keys that affect only the speed: neither the work nor the machine.
  const choices = ["backend", "cuda_aware", "exchange", "overlap"];
  const given = ["model", "cluster", "optimizer", "backend", "cuda_aware", "gpus", "global_batch",
    "warmup_percent", "nic_bandwidth_Gbps"];
  // Keys of a manifest whose columns have other titles.
  const columnOf = { "cluster.nic.bandwidth": "nic_bandwidth_Gbps" };

  class Rows {
    constructor(data) {
      this.count = data.rows;
      this.total = data.total;
      this.stages = data.stages;  // [name in titles, displayed name of its steps]
      this.parts = data.parts;    // [name in titles, label, colour]; the last is the rest of the step
      this.columns = data.columns.map((spec) => new Column(spec));
      this.byKey = new Map(this.columns.map((column) => [column.key, column]));
      this.all = Array.from({ length: this.count }, function (_, row) { return row; });
      this.swept = this.sweptKeys(data.swept || []);
      const status = this.column("status");
      const fine = status ? status.names.indexOf("ok") : -1;
      this.ok = this.all.filter((row) => !status || status.place(row) === fine);
    }
    column(key) { return this.byKey.get(key) || null; }
    text(key, row) {
      const column = this.column(key);
      return column ? column.at(row) : "";
    }

    // Returns the keys that differ and do not follow from earlier ones. Keys listed as swept come
    // first, so that numbers that follow from others (nodes from GPUs) are not keys of their own.
    sweptKeys(said) {
      const steps = this.column("steps");
      const share = steps && steps.differs ? "warmup_percent" : "freeze_step";
      const first = said.map(function (key) {
        return key === "freeze_step" ? share : columnOf[key] || key;
      });
      const keys = this.columns.filter(function (c) { return c.kind === "key" && c.differs; });
      function rank(column) {
        const at = first.indexOf(column.key), known = given.indexOf(column.key);
        return (first.length > 0 && at < 0 ? 1e6 : 0) + (known >= 0 ? known : 1e3 + at);
      }
      keys.sort(function (a, b) { return rank(a) - rank(b); });
      let groups = new Uint32Array(this.count), count = 1;
      const swept = [];
      keys.forEach((column) => {
        const seen = new Map(), next = new Uint32Array(this.count);
        for (let row = 0; row < this.count; ++row) {
          const id = groups[row] * column.names.length + column.place(row);
          if (!seen.has(id)) seen.set(id, seen.size);
          next[row] = seen.get(id);
        }
        if (seen.size === count) return;
        groups = next;
        count = seen.size;
        swept.push(column);
      });
      const shown = this.columns.indexOf.bind(this.columns);
      return swept.sort(function (a, b) { return shown(a) - shown(b); });
    }

    // Returns the rows for which every key of `slice` has its value or does not apply. A value is
    // the text of a name, or "1..8" for all numbers between.
    matching(slice, rows) {
      const tests = Object.keys(slice).map((key) => {
        const column = this.column(key);
        if (!column || !column.names) return null;
        const range = /^([^.].*?)\.\.(.+)$/.exec(slice[key]);
        const fits = column.names.map(function (name, place) {
          if (String(name) === slice[key] || place === column.passes) return true;
          const value = column.numbers && column.numbers[place];
          return range !== null && value !== null && value !== undefined &&
            value >= Number(range[1]) && value <= Number(range[2]);
        });
        return function (row) { return fits[column.place(row)]; };
      }).filter(function (test) { return test !== null; });
      return (rows || this.all).filter(function (row) {
        return tests.every(function (test) { return test(row); });
      });
    }

    isCompressed(row) {
      const plain = this.text("baseline_optimizer", row), exchange = this.text("exchange", row);
      return plain !== "" && (plain !== this.text("optimizer", row) ||
        (exchange !== "" && exchange !== "all_reduce"));
    }

    // Returns the rows that a picture of `figure` can show.
    drawable(figure) {
      return this.ok.filter((row) => {
        if (figure.at(row) === null) return false;
        return figure.key !== "speedup_vs_baseline" || this.isCompressed(row);
      });
    }

    // Returns the index of the recommended value of a choice, such as a backend: the one that is
    // fastest most often among compressed rows equal in all other swept keys; null if there is
    // none.
    recommended(column) {
      if (choices.indexOf(column.key) < 0) return null;
      if (column.best !== undefined) return column.best;
      const rate = this.column("run_samples_per_s"), wins = new Map(), groups = new Map();
      const others = this.swept.filter((c) => c !== column);
      this.ok.filter((row) => rate && rate.at(row) !== null && this.isCompressed(row)).forEach((row) => {
        const key = others.map((c) => c.place(row)).join(), group = groups.get(key);
        if (group) group.push(row); else groups.set(key, [row]);
      });
      groups.forEach((rows) => {
        const top = rows.reduce((best, row) => rate.at(row) > rate.at(best) ? row : best);
        if (rows.length > 1) wins.set(column.place(top), (wins.get(column.place(top)) || 0) + 1);
      });
      const most = Math.max.apply(null, Array.from(wins.values()).concat(0));
      column.best = most === 0 ? null : column.order.find((place) => wins.get(place) === most);
      return column.best;
    }

    // Returns a value for each key in `keys`, preferred in this order: it has many values of the
    // keys `along`; it is recommended, or has the share of warm-up nearest to the published run; it
    // has rows with `figure` on both sides of 1; it has the most values of `along`, the most rows,
    // the highest rate, the largest number.
    settle(rows, keys, along, figure) {
      const slice = {}, steps = this.column("steps");
      keys.forEach((column) => {
        const places = new Map();
        rows.forEach((row) => {
          const place = column.place(row);
          if (!places.has(place))
            places.set(place, { spots: new Set(), above: 0, below: 0, rows: 0, top: 0, plain: 0 });
          const one = places.get(place);
          one.spots.add(along.map(function (key) { return key.place(row); }).join());
          if (figure.at(row) > 1) ++one.above;
          if (figure.at(row) < 1) ++one.below;
          if (figure.key === "run_samples_per_s") one.top = Math.max(one.top, figure.at(row));
          if (!this.isCompressed(row)) ++one.plain;
          ++one.rows;
        });
        if (column.passes !== null && places.size > 1) places.delete(column.passes);
        let best = null;
        const widest = Math.max.apply(null, Array.from(places.values(), (one) => one.spots.size));
        // For a choice, a value with rows of the plain optimizer is preferred, so that the slice
        // has something to compare with.
        const isChoice = choices.indexOf(column.key) >= 0;
        const plain = isChoice && Array.from(places.values()).some(function (one) { return one.plain > 0; });
        column.order.filter(function (p) { return places.has(p); }).forEach((place) => {
          const one = places.get(place), number = column.numbers ? column.numbers[place] : null;
          const warmup = column.key === "warmup_percent" ? number
            : column.key === "freeze_step" && steps ? 100 * (number - 1) / steps.at(rows[0]) : null;
          const liking = warmup !== null ? -Math.abs(warmup - lambcast.publishedWarmup)
            : number !== null ? number : -place;
          const score = [one.spots.size > 0.7 * widest && (!plain || one.plain > 0) ? 1 : 0,
            warmup !== null ? liking : place === this.recommended(column) ? 1 : 0, one.above * one.below > 0 ? 1 : 0,
            one.spots.size, one.rows, one.top, liking];
          const better = best === null || score.some(function (s, i) {
            return s > best.score[i] && score.slice(0, i).every(function (t, j) {
              return t === best.score[j];
            });
          });
          if (better) best = { place: place, score: score };
        });
        if (best === null) return;
        slice[column.key] = String(column.names[best.place]);
        rows = rows.filter(function (row) {
          return column.place(row) === best.place || column.place(row) === column.passes;
        });
      });
      return slice;
    }

    // Returns the ends of a figure's interval, or null. For a step they are forecast; for a run,
    // its cost and its rate they assume that all steps have the same error.
    interval(figure, row) {
      const middle = figure.at(row);
      const step = /^(.*)_step_time_us$/.exec(figure.key);
      if (step) {
        const low = this.text(step[1] + "_step_time_low_us", row);
        const high = this.text(step[1] + "_step_time_high_us", row);
        return typeof low === "number" && typeof high === "number" ? [low, high] : null;
      }
      const own = this.ownEnds(figure);
      if (own !== null) {
        const low = own[0].at(row), high = own[1].at(row);
        return low === null || high === null ? null : [low, high];
      }
      const ends = this.runShares(row);
      if (ends === null || middle === null) return null;
      if (figure.key === "run_samples_per_s") return [middle / ends[1], middle / ends[0]];
      const scales = ["run_time_s", "cost_usd", "gpu_hours"].indexOf(figure.key) >= 0;
      return scales ? [middle * ends[0], middle * ends[1]] : null;
    }
    // Returns the columns of a run's interval, if the sweep wrote them.
    ownEnds(figure) {
      const ends = { run_time_s: ["run_time_low_s", "run_time_high_s"],
        cost_usd: ["cost_low_usd", "cost_high_usd"],
        speedup_vs_baseline: ["speedup_low", "speedup_high"],
        fused_speedup: ["fused_speedup_low", "fused_speedup_high"] }[figure.key] || [];
      const found = ends.map((key) => this.column(key));
      return found.length === 2 && found[0] && found[1] ? found : null;
    }
    runShares(row) {
      let sum = 0, low = 0, high = 0;
      for (const [stage] of this.stages) {
        const steps = this.text(stage + "_steps", row);
        const time = this.text(stage + "_step_time_us", row);
        if (!steps || typeof time !== "number") continue;
        const ends = this.interval(this.column(stage + "_step_time_us"), row);
        if (ends === null) return null;
        sum += steps * time;
        low += steps * ends[0];
        high += steps * ends[1];
      }
      return sum > 0 ? [low / sum, high / sum] : null;
    }
    isExtrapolated(row) { return this.text("communication_calibrated", row) === "false"; }
  }

  // The published 1-bit LAMB run warms up for 1000 of 5993 steps (arXiv 2104.06069), as in slice.h.
  lambcast.publishedWarmup = 100 * 1000 / 5993;
  lambcast.Rows = Rows;
})();
