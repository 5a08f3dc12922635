// The interactive part of a report: a filter for every swept key, the choice of axes, the pictures
// and rows of the slice, and the address of the view (after the #).
"use strict";

(function () {
  const make = lambcast.make;
  const longList = 60;  // limit of the values in a menu
  const reserved = ["x", "y", "by", "map", "sort", "find"];

  function menu(label, options, chosen, onChange) {
    const select = make("select", {}, options.map(function (option) {
      return make("option", { value: option[0], textContent: option[1] });
    }));
    select.value = chosen;
    select.addEventListener("change", function () { onChange(select.value); });
    return make("label", {}, [make("span", {}, [label]), select]);
  }

  class Explorer {
    constructor(data, place) {
      this.data = data;
      this.place = place;
      this.study = document.title.replace(/^lambcast report:? ?/, "");
      this.figures = data.columns.filter((c) => c.kind === "figure" && data.drawable(c).length > 0);
      this.axes = data.swept.filter((c) => c.numbers !== null);
      this.views = this.possibleViews();
      this.build();
      addEventListener("hashchange", () => { if (!this.writing) this.start(); });
      this.start();
    }
    column(key) { return key ? this.data.column(key) : null; }

    // Returns the questions that the sweep answers, the most informative first: {label, state}.
    possibleViews() {
      const views = [];
      const speedup = this.figures.find((c) => c.key === "speedup_vs_baseline");
      const rate = this.figures.find((c) => c.key === "run_samples_per_s");
      const run = this.figures.find((c) => c.key === "run_time_s");
      const add = (figure, key) => {
        const x = this.axes.find((c) => c.key === key);
        if (!figure || !x) return;
        const state = this.settled(x, figure);
        if (state) views.push({ label: figure.label + " by " + x.label, state: state });
      };
      add(speedup, "nic_bandwidth_Gbps");
      add(rate, "gpus");
      add(speedup, "global_batch");
      add(run, "warmup_percent");
      this.axes.forEach((x) => {
        const known = ["nic_bandwidth_Gbps", "gpus", "global_batch", "warmup_percent"];
        if (known.indexOf(x.key) < 0) add(speedup || rate, x.key);
      });
      this.axes.forEach((x) => {
        if (!views.some((v) => v.state.x === x.key)) add(rate || speedup, x.key);
      });
      return views;
    }
    // Returns the slice that shows most of `figure` over `x`: lines by exchange, by optimizer, or
    // by the next key.
    settled(x, figure) {
      const data = this.data, rows = data.drawable(figure);
      const others = data.swept.filter((c) => c !== x);
      const by = others.find((c) => c.key === "exchange" && this.varies(c, rows)) ||
        others.find((c) => c.key === "optimizer" && this.varies(c, rows)) ||
        others.find((c) => this.varies(c, rows) && c.names.length <= 8) || null;
      const map = this.axes.find((c) => c !== x && c.key === "gpus") ||
        this.axes.find((c) => c !== x) || null;
      // Chooses the cluster last: one on which the answer changes, among those left by the other
      // keys.
      const rest = others.filter((c) => c !== by && c.key !== "cluster")
        .concat(others.filter((c) => c !== by && c.key === "cluster"));
      const slice = data.settle(rows, rest, [x].concat(by ? [by] : []), figure);
      const inside = data.matching(slice, rows);
      if (new Set(inside.map((row) => x.place(row))).size < 2) return null;
      return { x: x.key, y: figure.key, by: by ? by.key : "", map: map ? map.key : "",
        slice: slice, sort: "", find: "" };
    }
    varies(column, rows) {
      return rows.some((row) => column.place(row) !== column.place(rows[0]));
    }

    // ---- the address ----

    start() {
      const said = new URLSearchParams(location.hash.slice(1));
      const view = this.views[0];
      const state = view && Array.from(said.keys()).length === 0
        ? structuredClone(view.state)
        : { x: "", y: "", by: "", map: "", slice: {}, sort: "", find: "" };
      said.forEach((value, key) => {
        if (reserved.indexOf(key) >= 0) state[key] = value;
        else if (this.data.column(key)) state.slice[key] = value;
      });
      const known = (list, key) => list.some((c) => c.key === key);
      if (!known(this.axes, state.x)) state.x = view ? view.state.x : this.axes.length > 0
        ? this.axes[0].key : "";
      if (!known(this.figures, state.y)) state.y = view ? view.state.y : this.figures.length > 0
        ? this.figures[0].key : "";
      if (!known(this.data.swept, state.by)) state.by = "";
      if (!known(this.axes, state.map)) state.map = "";
      this.state = state;
      this.restoreTable();
      this.show();
    }
    restoreTable() {
      const table = this.table, sort = /^(-?)(.*)$/.exec(this.state.sort);
      table.find = this.state.find;
      table.sort = { column: table.columns.findIndex((c) => c.key === sort[2]),
        down: sort[1] === "-" };
    }
    address() {
      const said = new URLSearchParams();
      ["x", "y", "by", "map", "sort", "find"].forEach((key) => {
        if (this.state[key]) said.set(key, this.state[key]);
      });
      Object.entries(this.state.slice).forEach((entry) => said.set(entry[0], entry[1]));
      return "#" + said.toString();
    }
    remember() {
      const sort = this.table.sort, column = this.table.columns[sort.column];
      this.state.sort = column ? (sort.down ? "-" : "") + column.key : "";
      this.state.find = this.table.find;
      this.link.href = this.address();
      history.replaceState(null, "", this.address());
    }
    change(part) {
      Object.assign(this.state, part);
      this.show();
      this.remember();
    }

    // ---- the controls ----

    build() {
      const section = (title, id) => {
        const inside = make("div", {}), made = make("section", { id: id }, [inside]);
        if (title) made.prepend(make("h2", {}, [title]));
        this.place.append(made);
        return inside;
      };
      const top = section("Explore", "explore");
      this.chips = make("div", { className: "chips" });
      this.controls = make("div", { className: "controls" });
      this.slicers = make("div", { className: "controls slicers" });
      this.link = make("a", { textContent: "link to what is shown", href: "#" });
      const all = make("button", { type: "button", textContent: "all rows" });
      all.addEventListener("click", () => this.change({ slice: {} }));
      this.said = make("p", { className: "slice" });
      top.append(this.chips, this.controls, this.slicers, make("p", { className: "links" },
        [this.said, all, this.link]));
      this.views.forEach((view) => {
        const chip = make("button", { type: "button", textContent: view.label });
        chip.addEventListener("click", () => this.change(structuredClone(view.state)));
        this.chips.append(chip);
      });
      this.lines = make("div", { className: "picture" });
      this.linesCaption = make("p", { className: "caption" });
      this.lineTitle = make("h3");
      this.nothing = make("p", { className: "note", role: "status" });
      top.append(this.lineTitle, this.nothing, this.lines, this.linesCaption);
      this.chart = new lambcast.Chart(this.lines, 420);
      this.saving = lambcast.offerExport(this.chart, () => this.fileName(), () => ({
        title: this.titled(this.lineTitle.textContent), slice: this.said.textContent,
        caption: this.linesCaption.textContent }));
      top.append(this.saving);
      this.maps = section("", "maps");
      this.bars = section("Where a step goes", "steps");
      const rows = section("Rows", "rows");
      this.rowsSaid = make("p", { className: "caption" });
      rows.append(this.rowsSaid);
      this.table = new lambcast.VirtualTable(rows, this.data, this.tableColumns(),
        () => this.remember());
    }
    fileName(panel) {
      const state = this.state, keys = [state.y, state.x].concat(panel === undefined ? [] : [state.map, panel]);
      return keys.filter((key) => key !== "").join("-").replace(/[^\w-]+/g, "_");
    }
    // Order of columns: swept keys and those that all readers look for; figures; sources of the
    // rows; then keys that follow from others.
    tableColumns() {
      const first = ["cluster", "optimizer", "gpus", "global_batch"];
      const rank = (c) => c.kind === "detail" ? -1
        : c.kind === "figure" ? 2
        : c.kind === "fact" ? (c.differs || c.key === "status" || c.key === "cost_source" ? 3 : -1)
        : this.data.swept.indexOf(c) >= 0 || first.indexOf(c.key) >= 0 ? 1 : c.differs ? 4 : -1;
      const ranked = this.data.columns.map((c) => ({ column: c, rank: rank(c) }));
      return [1, 2, 3, 4].flatMap((r) => ranked.filter((one) => one.rank === r))
        .map((one) => one.column);
    }
    // Lists the values that all rows share.
    constants() {
      const same = this.data.columns.filter((c) => c.kind === "key" && !c.differs &&
        c.at(0) !== "" && this.table.columns.indexOf(c) < 0);
      return same.length === 0 ? "" : " Everywhere: " + same.map((c) =>
        c.label + " " + c.at(0)).join(", ") + ".";
    }
    showControls() {
      const state = this.state, option = (c) => [c.key, c.label];
      const keys = this.axes.map(option), none = [["", "none"]];
      const wanted = [
        menu("show", this.figures.map(option), state.y, (y) => this.change({ y: y })),
        menu("over", keys, state.x, (x) => this.changeAxis(x)),
        menu("lines by", none.concat(this.data.swept.filter((c) => c.key !== state.x).map(option)),
          state.by, (by) => this.changeBy(by))];
      if (this.axes.length > 1) wanted.push(menu("map against", none.concat(
        this.axes.filter((c) => c.key !== state.x).map(option)), state.map,
      (map) => this.changeMap(map)));
      this.controls.replaceChildren.apply(this.controls, this.axes.length > 0 ? wanted : []);
      this.slicers.replaceChildren.apply(this.slicers, this.data.swept.map((c) => this.slicer(c)));
    }
    without(key) {
      const slice = Object.assign({}, this.state.slice);
      delete slice[key];
      return slice;
    }
    changeAxis(x) {
      this.change({ x: x, slice: this.without(x), by: this.state.by === x ? "" : this.state.by,
        map: this.state.map === x ? "" : this.state.map });
    }
    changeBy(by) { this.change({ by: by, slice: this.without(by) }); }
    changeMap(map) { this.change({ map: map }); }
    slicer(column) {
      const value = this.state.slice[column.key] ?? "";
      const set = (wanted) => {
        const slice = this.without(column.key);
        if (wanted !== "") slice[column.key] = wanted;
        this.change({ slice: slice });
      };
      if (column.names.length > longList) {
        const ends = column.numbers ? lambcast.extent(column.numbers) : null;
        const box = make("input", { type: "text", value: value, size: 12,
          placeholder: ends ? ends[0] + ".." + ends[1] : "all" });
        box.addEventListener("change", () => set(box.value.trim()));
        return make("label", { className: value ? "set" : "" },
          [make("span", {}, [column.label]), box]);
      }
      const chosen = column.names.findIndex((name) => String(name) === value);
      const options = [["", "all " + column.names.length]].concat(column.order.map((place) =>
        [String(place), column.names[place] === "" ? "none" : String(column.names[place])]));
      const made = menu(column.label, options, column.key in this.state.slice ? String(chosen) : "",
        (place) => {
          const slice = this.without(column.key);
          if (place !== "") slice[column.key] = String(column.names[Number(place)]);
          this.change({ slice: slice });
        });
      if (column.key in this.state.slice) made.className = "set";
      return made;
    }

    // ---- what is shown ----

    show() {
      const data = this.data, state = this.state;
      this.showControls();
      Array.from(this.chips.children).forEach((chip, i) => {
        const of = this.views[i].state;
        chip.setAttribute("aria-pressed", String(of.x === state.x && of.y === state.y));
      });
      const slice = data.matching(state.slice);
      const x = this.column(state.x), figure = this.column(state.y), by = this.column(state.by);
      const drawable = figure ? data.matching(state.slice, data.drawable(figure)) : [];
      this.showLines(drawable, x, figure, by);
      this.showMaps(x, figure, by);
      const ok = data.matching(state.slice, data.ok);
      this.bars.parentNode.hidden = !lambcast.showBars(data, ok, x, this.bars);
      this.said.textContent = this.sliceText(state.slice, slice);
      this.rowsSaid.textContent = this.said.textContent + (data.thinning ? " " + data.thinning : "") +
        this.constants() + " results.csv beside this page has every column, with full precision.";
      this.table.show(slice);
      this.link.href = this.address();
    }
    sliceText(slice, rows) {
      const all = this.data.count;
      const where = Object.entries(slice).map(([key, value]) => [this.column(key), value])
        .filter(([column]) => column).map(([column, value]) => column.label + " " +
          (value === "" ? "none" : value) + (column.passes === null ? "" : " or none"));
      return rows.length === all ? "All " + all + " rows."
        : rows.length + " of " + all + " rows: " + where.join(", ") + ".";
    }
    // Returns the slice of a map, in which the keys of both axes are free.
    mapSlice() {
      const slice = this.without(this.state.map);
      return this.sliceText(slice, this.data.matching(slice));
    }
    titled(text) { return (this.study ? this.study + ": " : "") + text; }
    showLines(rows, x, figure, by) {
      const found = x && figure ? lambcast.linesOf(this.data, rows, x, figure, by) : null;
      [this.lines, this.linesCaption, this.saving].forEach((part) => { part.hidden = found === null; });
      this.lineTitle.hidden = !x || !figure;
      this.nothing.hidden = found !== null || !x || !figure;
      if (!x || !figure) return;
      this.lineTitle.textContent = figure.label + " by " + x.label;
      if (found === null) {
        this.nothing.textContent = this.whyNothing(x, figure);
        return;
      }
      this.linesCaption.textContent = found.notes.join(" ");
      this.chart.set(found.spec);
    }
    // Explains in a sentence why there is no line, and which choices give one.
    whyNothing(x, figure) {
      const slice = this.state.slice, quoted = (text) => "\"" + text + "\"";
      const hasLine = (some, over, shown) => new Set(this.data.matching(some, this.data.drawable(shown))
        .map((row) => over.number(row)).filter((value) => value !== null)).size > 1;
      const freed = Object.keys(slice).map((key) => this.column(key))
        .filter((c) => c && hasLine(this.without(c.key), x, figure));
      const ways = freed.slice(0, 2).map((c) => "set " + quoted(c.label) + " to all of its values");
      const axis = this.axes.find((c) => c !== x && hasLine(slice, c, figure));
      const other = this.figures.find((c) => c !== figure && hasLine(slice, x, c));
      if (axis) ways.push("choose " + quoted(axis.label) + " in \"over\"");
      if (other) ways.push("choose " + quoted(other.label) + " in \"show\"");
      if (ways.length === 0 && hasLine({}, x, figure)) ways.push("press \"all rows\"");
      return "No chart: the chosen rows have " + quoted(figure.label) + " at fewer than two values of " +
        quoted(x.label) + "; " + (ways.join(", or ") || "no other choice has more") + ".";
    }
    // Shows maps, in which the keys of both axes are free even if the slice fixes them.
    showMaps(x, figure, by) {
      const y = this.column(this.state.map), panels = this.maps;
      const slice = Object.assign({}, this.state.slice);
      if (y) delete slice[y.key];
      const rows = figure ? this.data.matching(slice, this.data.drawable(figure)) : [];
      const split = by === y ? null : by;
      const found = x && y && figure && x !== y
        ? lambcast.mapsOf(this.data, rows, x, y, figure, split) : null;
      panels.parentNode.hidden = found === null;
      panels.replaceChildren();
      this.mapCharts?.forEach((chart) => chart.drop());
      this.mapCharts = [];
      if (found === null) return;
      const title = figure.label + " by " + x.label + " and " + y.label;
      panels.append(make("h2", {}, [title]));
      const grid = make("div", { className: "panels" });
      panels.append(grid);
      found.maps.forEach((map) => {
        const panel = make("div", { className: "panel" }, map.title
          ? [make("h3", {}, [map.title])] : []);
        grid.append(panel);
        const chart = new lambcast.Chart(panel, 340);
        this.mapCharts.push(chart);
        chart.set(map.spec);
        panel.append(lambcast.offerExport(chart, () => this.fileName(map.title), () => ({
          title: this.titled(title + (map.title ? ", " + map.title : "")), slice: this.mapSlice(),
          caption: found.notes.join(" ") })));
      });
      panels.append(make("p", { className: "caption" }, [found.notes.join(" ")]));
    }
  }
  lambcast.Explorer = Explorer;
})();
