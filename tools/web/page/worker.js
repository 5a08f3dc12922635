// Answers the page's questions outside its main thread, one message for each. Questions of a newer
// run replace those that are left, except a run that is to be kept.
/* global LambcastEngine, lambcastUnpacked */
"use strict";

(function () {
  let engine = null, runs = [], working = false;
  const channel = new MessageChannel();

  function start(packed) {
    const options = { headers: { "Content-Type": "application/wasm" } };
    return WebAssembly.compileStreaming(new Response(lambcastUnpacked(packed), options)).then(function (module) {
      return new LambcastEngine(module);
    });
  }
  // Lets messages of the page arrive between two answers.
  function pause() {
    return new Promise(function (resolve) {
      channel.port1.onmessage = resolve;
      channel.port2.postMessage(null);
    });
  }
  async function answer(own, ready) {
    ready.files.clear();
    Object.entries(own.files).forEach(function (file) { ready.file(file[0], file[1]); });
    for (const [name, question] of Object.entries(own.questions)) {
      postMessage({ id: own.id, name: name, answer: ready.ask(question), bytes: ready.bytes });
      await pause();
      if (!own.keep && runs.length > 0) return;
    }
  }
  async function work() {
    working = true;
    try {
      const ready = await engine;
      while (runs.length > 0) await answer(runs.shift(), ready);
    } catch (error) {
      postMessage({ failed: error.message });
    }
    working = false;
  }

  addEventListener("message", function (event) {
    if (event.data.module) {
      engine = start(event.data.module);
      return;
    }
    runs = runs.filter(function (run) { return run.keep; }).concat(event.data);
    if (!working) work();
  });
})();
