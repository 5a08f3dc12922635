// The run set by the controls, and its form as a question, a command and an address.
"use strict";

(function () {
  const plainOf = { onebit_lamb: "lamb", onebit_adam: "adam", zero_one_adam: "adam" };
  const own = lambcast.ownFile = { cluster: "my-cluster.toml", model: "config.json" };

  lambcast.defaults = { cluster: "commodity-10gbe", model: "bert-large", gpus: 32, global_batch: 16384,
    micro_batch: 64, nic: "", freeze_step: 20, steps: 5993, optimizer: "onebit_lamb",
    exchange: "all_reduce", cluster_text: "", model_text: "" };

  lambcast.isOnebit = function (run) { return run.optimizer in plainOf; };
  lambcast.isCompressed = function (run) {
    return lambcast.isOnebit(run) || run.exchange !== "all_reduce";
  };

  // Returns the flags of the run, by key.
  function textsOf(run) {
    const texts = { model: run.model === "own" ? own.model : run.model,
      cluster: run.cluster === "own" ? own.cluster : run.cluster, gpus: String(run.gpus),
      optimizer: run.optimizer, global_batch: String(run.global_batch),
      micro_batch: String(run.micro_batch), steps: String(run.steps) };
    if (lambcast.isOnebit(run)) texts.freeze_step = run.freeze_step + "%";
    else if (run.exchange !== "all_reduce") texts.exchange = run.exchange;
    if (run.nic !== "") texts["cluster.nic.bandwidth"] = run.nic + "Gbit/s";
    return texts;
  }
  lambcast.textsOf = textsOf;

  function plainTextsOf(run) {
    const texts = textsOf(Object.assign({}, run, { optimizer: plainOf[run.optimizer] || run.optimizer,
      exchange: "all_reduce" }));
    delete texts.freeze_step;
    return texts;
  }

  // Returns the questions for one state of the controls, by name.
  lambcast.questionsOf = function (run) {
    const texts = textsOf(run), questions = { run: { command: "simulate", texts: texts },
      plain: { command: "simulate", texts: plainTextsOf(run) } };
    if (lambcast.isOnebit(run)) questions.advice = { command: "advise", texts: texts };
    if (lambcast.isCompressed(run)) questions.curve = { command: "curve", texts: texts,
      scans: ["cluster.nic.bandwidth=1Gbit/s:800Gbit/s:x1.28"] };
    return questions;
  };
  lambcast.filesOf = function (run) {
    const files = {};
    if (run.cluster === "own") files[own.cluster] = run.cluster_text;
    if (run.model === "own") files[own.model] = run.model_text;
    return files;
  };

  lambcast.commandOf = function (run) {
    const texts = textsOf(run);
    const words = ["lambcast", lambcast.isOnebit(run) ? "advise" : "simulate"];
    Object.keys(texts).forEach(function (key) {
      if (key.includes(".")) words.push("--set", key + "=" + texts[key]);
      else words.push("--" + key.replace(/_/g, "-"), texts[key]);
    });
    return words.join(" ");
  };

  // ---- the address ----

  lambcast.addressOf = function (run) {
    const said = new URLSearchParams();
    Object.keys(lambcast.defaults).forEach(function (key) {
      if (String(run[key]) !== String(lambcast.defaults[key])) said.set(key, run[key]);
    });
    return said.toString();
  };
  lambcast.runOf = function (address) {
    const run = Object.assign({}, lambcast.defaults);
    new URLSearchParams(address).forEach(function (value, key) {
      if (key in run) run[key] = typeof run[key] === "number" ? Number(value) : value;
    });
    return run;
  };
})();
