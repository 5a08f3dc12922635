// Files of the user: a cluster, a model, a DeepSpeed file, which fills the controls, or a log, to
// which the cluster is calibrated.
/* global DecompressionStream */
"use strict";

(function () {
  const make = lambcast.make, own = lambcast.ownFile;

  function textOf(file) {
    if (!/\.gz$/i.test(file.name)) return file.text();
    return new Response(file.stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }
  const listOf = function (title, lines) {
    return make("details", {}, [make("summary", {}, [title]), make("pre", { className: "file" }, [lines])]);
  };

  // Returns elements that state the keys of a DeepSpeed file without effect here.
  function ledgerOf(answer) {
    if (!answer.answer) return [];
    const keys = answer.answer.flatMap(function (file) { return file.keys; });
    const of = function (treatment) { return keys.filter(function (key) { return key.treatment === treatment; }); };
    const lines = function (some) { return some.map(function (key) { return key.key + ": " + key.reason; }).join("\n"); };
    return [["named", "not applied"], ["costless", "without effect on the cost"]].filter(function (kind) {
      return of(kind[0]).length > 0;
    }).map(function (kind) {
      const some = of(kind[0]);
      return listOf(some.length + (some.length === 1 ? " key " : " keys ") + kind[1], lines(some));
    });
  }

  // Each takes the name and the text of a file, changes the run and returns what to show.
  const takers = {
    cluster: async function (name, text, run) {
      Object.assign(run, { cluster: "own", cluster_text: text });
      return [name + " is the cluster."];
    },
    model: async function (name, text, run) {
      Object.assign(run, { model: "own", model_text: text });
      return [name + " is the model."];
    },
    config: async function (name, text, run, askOnce, changed) {
      const all = lambcast.textsOf(run), files = Object.assign(lambcast.filesOf(run), { [own.config]: text });
      const texts = { model: all.model, cluster: all.cluster, gpus: all.gpus, steps: all.steps, config: own.config };
      const found = await askOnce({ command: "simulate", texts: texts }, files);
      if (found.error) return [found.error.replace(own.config, name)];
      const inputs = found.answer.inputs, freezes = inputs.freeze_step !== null;
      Object.assign(run, { config_text: text, optimizer: inputs.optimizer, exchange: inputs.exchange,
        global_batch: inputs.global_batch, micro_batch: inputs.micro_batch, zero_stage: String(inputs.zero_stage),
        backend: inputs.backend },
      freezes ? { freeze_step: Number((100 * inputs.freeze_step / inputs.steps).toPrecision(6)) } : {});
      const away = make("button", { type: "button" }, ["Leave its other keys out"]);
      away.addEventListener("click", function () {
        run.config_text = "";
        away.disabled = true;
        changed();
      });
      return [name + " fills the controls; a moved control replaces its value. ", away]
        .concat(ledgerOf(await askOnce({ command: "inputs", texts: texts }, files)));
    },
    log: async function (name, text, run, askOnce) {
      const found = await askOnce({ command: "calibrate", text: text, file: name, texts: lambcast.textsOf(run) },
        lambcast.filesOf(run));
      if (found.error) return [found.error];
      Object.assign(run, { cluster: "own", cluster_text: found.answer.cluster_text, nic: "", nics: "" });
      return ["The cluster is calibrated to " + name + ".", listOf("What was fitted", found.answer.report)];
    },
  };

  // Takes the files one after another; `changed` is called after each, and `place` shows what it
  // did.
  lambcast.takeFiles = async function (files, run, askOnce, place, changed) {
    for (const file of files) {
      const text = await textOf(file);
      place.textContent = "Reading " + file.name + " ...";
      place.replaceChildren.apply(place, await takers[lambcast.kindOf(text)](file.name, text, run, askOnce, changed));
      changed();
    }
  };
})();
