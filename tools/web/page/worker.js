// Answers the page's questions one after another, outside its main thread.
/* global DecompressionStream, LambcastEngine, lambcastBytes */
"use strict";

(function () {
  let engine = null;

  async function unpacked(packed) {
    const stream = new Blob([lambcastBytes(packed)]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).arrayBuffer();
  }

  addEventListener("message", async function (event) {
    const asked = event.data;
    if (asked.module) {
      engine = new LambcastEngine(await WebAssembly.compile(await unpacked(asked.module)));
    } else {
      engine.files.clear();
      Object.entries(asked.files || {}).forEach(function (file) { engine.file(file[0], file[1]); });
    }
    const answers = asked.questions.map(function (question) { return engine.ask(question); });
    postMessage({ id: asked.id, answers: answers, bytes: engine.bytes });
  });
})();
