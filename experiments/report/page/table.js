// Tables that sort and filter. A table with its rows in the page gets buttons. A table of a hundred
// thousand rows has elements only for the visible ones (rows have equal heights).
"use strict";

lambcast.make = function (tag, properties, children) {
  const made = document.createElement(tag);
  Object.entries(properties || {}).forEach(function (entry) {
    if (entry[0] in made) made[entry[0]] = entry[1];
    else made.setAttribute(entry[0], entry[1]);
  });
  (children || []).forEach(function (child) { made.append(child); });
  return made;
};

(function () {
  const make = lambcast.make;

  // Sort rank: numbers before text, empty cells last.
  function rank(cell) {
    return cell === "" || cell === null ? 2 : typeof cell === "number" ? 0 : 1;
  }
  lambcast.sorted = function (rows, cellOf, down) {
    return rows.map(function (row, place) { return { row: row, place: place, cell: cellOf(row) }; })
      .sort(function (a, b) {
        if (rank(a.cell) !== rank(b.cell)) return rank(a.cell) - rank(b.cell);
        if (a.cell === b.cell || rank(a.cell) === 2) return a.place - b.place;
        return (a.cell < b.cell ? -1 : 1) * (down ? -1 : 1);
      }).map(function (entry) { return entry.row; });
  };

  function filterBox(onChange) {
    const words = "show rows with all these words";
    const box = make("input", { type: "search", className: "filter", placeholder: words,
      "aria-label": words });
    box.addEventListener("input", function () { onChange(box.value); });
    return box;
  }
  function wanted(text) {
    const words = text.toLowerCase().split(/\s+/);
    return function (row) {
      return words.every(function (word) { return row.indexOf(word) >= 0; });
    };
  }
  function markSorted(heads, index, down) {
    Array.from(heads).forEach(function (head, i) {
      if (i === index) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }

  // Adds buttons to a table whose rows are in the page.
  lambcast.standingTable = function (table) {
    const heads = table.tHead.rows[0].cells, body = table.tBodies[0];
    const rows = Array.from(body.rows).map(function (tr) {
      return { tr: tr, words: tr.textContent.toLowerCase(),
        cells: Array.from(tr.cells).map(function (td) {
          const number = td.className === "n" && td.textContent !== "";
          return number ? parseFloat(td.textContent) : td.textContent;
        }) };
    });
    let shown = rows, order = rows;
    function show() {
      const some = new Set(shown);
      body.replaceChildren.apply(body, order.filter(function (row) { return some.has(row); })
        .map(function (row) { return row.tr; }));
    }
    if (rows.length > 30) {
      const box = filterBox(function (text) {
        const fits = wanted(text);
        shown = rows.filter(function (row) { return fits(row.words); });
        show();
      });
      const bar = make("div", { className: "bar" }, [box]);
      table.parentNode.parentNode.insertBefore(bar, table.parentNode);
    }
    Array.from(heads).forEach(function (head, column) {
      const button = make("button", { type: "button", textContent: head.textContent });
      head.replaceChildren(button);
      button.addEventListener("click", function () {
        const down = head.getAttribute("aria-sort") === "ascending";
        order = lambcast.sorted(rows, function (row) { return row.cells[column]; }, down);
        show();
        markSorted(heads, column, down);
      });
    });
  };

  const rowPixels = 26, spare = 10;

  // A table of the rows of `data` (rows.js) in `place`. `show` sets other rows; `onChange` is
  // called after a change of order or filter.
  class VirtualTable {
    constructor(place, data, columns, onChange) {
      this.data = data;
      this.columns = columns;
      this.onChange = onChange;
      this.rows = this.view = [];
      this.words = [];
      this.sort = { column: -1, down: false };
      this.find = "";
      this.box = filterBox((text) => { this.find = text; this.arrange(); onChange(); });
      this.count = make("span", { className: "count" });
      this.body = make("tbody");
      this.heads = columns.map((column, i) => this.head(column, i));
      const widths = columns.map((column) => make("col", { style: "width:" + this.width(column) }));
      this.table = make("table", { className: "listing virtual" }, [make("colgroup", {}, widths),
        make("thead", {}, [make("tr", {}, this.heads)]), this.body]);
      this.table.style.width = widths.reduce((sum, c) => sum + parseFloat(c.style.width), 0) + "ch";
      this.scroll = make("div", { className: "scroll", tabIndex: 0, role: "region",
        "aria-label": "rows" }, [this.table]);
      this.scroll.addEventListener("scroll", () => this.draw());
      place.append(make("div", { className: "bar" }, [this.box, this.count]), this.scroll);
    }
    head(column, i) {
      const button = make("button", { type: "button", textContent: column.label });
      button.addEventListener("click", () => {
        this.sort = { column: i, down: this.sort.column === i && !this.sort.down };
        this.arrange();
        this.onChange();
      });
      return make("th", { scope: "col" }, [button]);
    }
    width(column) {
      const cells = column.names ? column.names.map((name) => String(name).length) : [9];
      const longest = Math.max.apply(null, cells.slice(0, 1000).concat(column.label.length + 2));
      return Math.min(longest + 2, 44) + "ch";
    }
    cell(column, row) {
      const value = column.at(row);
      if (column.names) return String(value);
      return lambcast.number(value);
    }
    wordsOf(row) {
      if (this.words[row] === undefined)
        this.words[row] = this.columns.map((c) => this.cell(c, row)).join(" ").toLowerCase();
      return this.words[row];
    }
    show(rows) {
      this.rows = rows;
      this.arrange();
    }
    arrange() {
      const fits = wanted(this.find), column = this.columns[this.sort.column];
      const rows = this.find === "" ? this.rows : this.rows.filter((r) => fits(this.wordsOf(r)));
      this.view = column ? lambcast.sorted(rows, (row) => column.at(row), this.sort.down) : rows;
      if (column) markSorted(this.heads, this.sort.column, this.sort.down);
      if (this.box.value !== this.find) this.box.value = this.find;
      this.count.textContent = this.view.length + (this.view.length === 1 ? " row" : " rows");
      this.table.setAttribute("aria-rowcount", this.view.length);
      this.scroll.scrollTop = 0;
      this.first = -1;
      this.draw();
    }
    draw() {
      // The box keeps the height of the rows that were shown before.
      const height = Math.max(this.scroll.clientHeight, 520);
      const first = Math.max(0, Math.floor(this.scroll.scrollTop / rowPixels) - spare);
      if (first === this.first) return;
      this.first = first;
      const last = Math.min(this.view.length, first + Math.ceil(height / rowPixels) + 2 * spare);
      const gap = (rows) => make("tr", { className: "gap" },
        [make("td", { colSpan: this.columns.length, style: "height:" + rows * rowPixels + "px" })]);
      const shown = this.view.slice(first, last).map((row, i) => this.element(row, first + i));
      this.body.replaceChildren.apply(this.body, [].concat(first > 0 ? gap(first) : [], shown,
        last < this.view.length ? gap(this.view.length - last) : []));
    }
    element(row, index) {
      const tr = make("tr", { "aria-rowindex": index + 1 }, this.columns.map((column) => {
        const td = make("td", { textContent: this.cell(column, row) });
        if (typeof column.at(row) === "number") td.className = "n";
        if (td.textContent.length > 40) td.title = td.textContent;
        return td;
      }));
      if (this.data.text("status", row) !== "ok") tr.className = "bad";
      return tr;
    }
  }
  lambcast.VirtualTable = VirtualTable;
})();
