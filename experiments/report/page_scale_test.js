// Drives the page of a hundred thousand rows (tools/page_scale_test.sh appends it to the page).
// `counts` has the number of rows for each question, as counted in results.csv. The results go into
// <pre id=checks>, one per line, beginning with "ok" or "FAILED".
/* global counts */
"use strict";

(function () {
  const lines = [];
  function same(what, found, wanted) {
    lines.push(found === wanted ? "ok " + what
      : "FAILED " + what + ": " + JSON.stringify({ found: found, wanted: wanted }));
  }
  const explorer = lambcast.explorer, scroll = document.querySelector("#rows .scroll");
  function go(hash) {
    history.replaceState(null, "", "#" + hash);
    dispatchEvent(new HashChangeEvent("hashchange"));
  }
  function rows() { return document.querySelector("#rows .count").textContent; }
  function said(count) { return count + (count === 1 ? " row" : " rows"); }
  function find(text) {
    const box = document.querySelector("#rows input.filter");
    box.value = text;
    box.dispatchEvent(new Event("input"));
  }
  // Lines and marks have a strong colour; axes and text are grey, bands pale.
  function drawn() {
    const canvas = document.querySelector(".picture canvas");
    const rgba = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    let strong = 0;
    for (let i = 0; i < rgba.length; i += 4) {
      const rgb = rgba.slice(i, i + 3);
      if (rgba[i + 3] > 200 && Math.max(...rgb) - Math.min(...rgb) > 100) ++strong;
    }
    return strong > 100;
  }
  function shown() { return document.querySelectorAll("#rows tbody tr[aria-rowindex]").length; }

  // uPlot draws asynchronously.
  function wait() { return new Promise(function (done) { setTimeout(done, 300); }); }
  async function run() {
    await wait();
    same("it holds every row", explorer.data.count, counts.all);
    same("the first picture is drawn", drawn(), true);
    go("x=steps&y=run_time_s");
    await wait();
    same("all rows are in the table", rows(), said(counts.all));
    same("all rows at once are drawn", drawn(), true);
    same("few of them are elements", shown() > 0 && shown() < 200, true);
    scroll.scrollTop = scroll.scrollHeight;
    scroll.dispatchEvent(new Event("scroll"));
    same("the last one can be reached", document.querySelector("#rows tbody tr[aria-rowindex=\"" +
      counts.all + "\"]") !== null, true);
    ["8", "16", "32", "64", "128"].forEach(function (gpus) {
      go("gpus=" + gpus);
      same("slice of " + gpus + " GPUs", rows(), said(counts.gpus[gpus]));
    });
    find("onebit_lamb");
    same("a filter", rows(), said(counts.found));
    go("x=steps");
    const at = explorer.table.columns.findIndex(function (c) { return c.key === "run_time_s"; });
    const head = document.querySelectorAll("#rows th button")[at];
    head.click();
    head.click();
    const longest = document.querySelector("#rows tbody tr[aria-rowindex=\"1\"]").cells[at];
    same("sorted, the longest run first",
      Math.abs(Number(longest.textContent) / counts.longest - 1) < 1e-3, true);
    for (const chip of document.querySelectorAll(".chips button")) {
      chip.click();
      await wait();
      same("view " + chip.textContent, drawn(), true);
    }
    // Memory of the script's objects after all checks; precise with --enable-precise-memory-info.
    const megabytes = performance.memory.usedJSHeapSize / 1e6;
    same("in " + megabytes.toFixed(0) + " MB", megabytes < counts.megabytes, true);
  }
  run().catch(function (error) { lines.push("FAILED with " + error.stack); }).then(function () {
    document.body.append(lambcast.make("pre", { id: "checks" },
      [lines.join("\n") + "\nend of checks"]));
  });
})();
