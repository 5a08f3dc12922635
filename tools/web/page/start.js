// Starts the Worker while the page is being read, then gives it the module, and runs the scripts.
/* exported lambcastWorker */
"use strict";

const lambcastWorker = (function () {
  const text = function (id) { return document.getElementById(id).textContent; };
  const worker = new Worker(URL.createObjectURL(new Blob([text("worker")], { type: "text/javascript" })));
  addEventListener("DOMContentLoaded", async function () {
    worker.postMessage({ module: text("module") });
    const script = document.createElement("script");
    script.textContent = await new Response(self.lambcastUnpacked(text("scripts"))).text();
    document.body.append(script);
  });
  return worker;
})();
