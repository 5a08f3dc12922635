// The run set by the controls, and its form as a question, a command, a sweep file and an address.
"use strict";

(function () {
  const plainOf = { onebit_lamb: "lamb", onebit_adam: "adam", zero_one_adam: "adam" };
  const own = lambcast.ownFile = { cluster: "my-cluster.toml", model: "config.json", config: "ds_config.json" };

  lambcast.defaults = { cluster: "commodity-10gbe", model: "bert-large", gpus: 32, global_batch: 16384,
    micro_batch: 64, nic: "", freeze_step: 20, steps: 5993, optimizer: "onebit_lamb",
    exchange: "all_reduce", cluster_text: "", model_text: "", config_text: "", zero_stage: "0",
    backend: "nccl", node_gpus: "", nics: "", usd: "", axis: "nic", open: "" };
  // Controls that change the description of a cluster; an empty one leaves it as it is.
  const settings = { nic: "cluster.nic.bandwidth", nics: "cluster.nic.count", node_gpus: "cluster.node.gpus",
    usd: "cluster.usd_per_gpu_hour" };
  const units = { nic: "Gbit/s", freeze_step: "%" };

  lambcast.isOnebit = function (run) { return run.optimizer in plainOf; };
  // Whether the verdict is that of `advise`, which takes the fastest backend and no ZeRO.
  lambcast.isAdvised = function (run) {
    return lambcast.isOnebit(run) && run.backend === "nccl" && run.zero_stage === "0";
  };
  lambcast.isCompressed = function (run) {
    return lambcast.isOnebit(run) || run.exchange !== "all_reduce";
  };

  // Returns the flags of the run, by key.
  function textsOf(run) {
    const texts = { model: run.model === "own" ? own.model : run.model,
      cluster: run.cluster === "own" ? own.cluster : run.cluster, gpus: String(run.gpus),
      optimizer: run.optimizer, global_batch: String(run.global_batch),
      micro_batch: String(run.micro_batch), steps: String(run.steps) };
    if (run.config_text !== "") texts.config = own.config;
    if (run.zero_stage !== "0" || run.config_text !== "") texts.zero_stage = String(run.zero_stage);
    if (lambcast.isOnebit(run)) {
      texts.freeze_step = run.freeze_step + "%";
      if (run.backend !== "nccl" || run.config_text !== "") texts.backend = run.backend;
    } else if (run.exchange !== "all_reduce") texts.exchange = run.exchange;
    Object.keys(settings).forEach(function (key) {
      if (run[key] !== "") texts[settings[key]] = run[key] + (units[key] || "");
    });
    return texts;
  }
  lambcast.textsOf = textsOf;

  function plainTextsOf(run) {
    const texts = textsOf(Object.assign({}, run, { optimizer: plainOf[run.optimizer] || run.optimizer,
      exchange: "all_reduce" }));
    delete texts.freeze_step;
    delete texts.backend;
    return texts;
  }

  // ---- what the choices are compared by ----

  function powers(low, high) {
    const all = [];
    for (let value = low; value <= high; value *= 2) all.push(value);
    return all;
  }
  lambcast.powers = powers;
  const nicRates = lambcast.nicRates = [1, 2, 4, 5, 8, 10, 16, 20, 25, 40, 50, 80, 100, 150, 200, 300, 400, 800];

  // By name: the title, and the values for a run on nodes of `node` GPUs.
  lambcast.axes = {
    nic: { key: settings.nic, title: "NIC bandwidth", unit: "Gbit/s", values: function () { return nicRates; } },
    gpus: { key: "gpus", title: "GPUs", unit: "GPUs", values: function (run, node) { return powers(node, 512 * node); } },
    global_batch: { key: "global_batch", title: "batch", unit: "samples", values: function (run) {
      const least = run.micro_batch * run.gpus;
      return powers(least, Math.max(131072, 8 * least));
    } },
    freeze_step: { key: "freeze_step", title: "warm-up", unit: "%", values: function () {
      return [2, 5, 10, 15, 20, 25, 30, 40, 50];
    } },
    cluster: { key: "cluster", title: "cluster", unit: "" },
  };
  lambcast.axisNameOf = function (run) {
    return run.axis in lambcast.axes && (run.axis !== "freeze_step" || lambcast.isOnebit(run)) ? run.axis : "nic";
  };

  // Returns the question for the run at each value of the chosen axis.
  function curveOf(run, node, clusters) {
    const name = lambcast.axisNameOf(run), axis = lambcast.axes[name], texts = textsOf(run);
    if (name === "cluster") Object.values(settings).forEach(function (key) {
      if (key !== settings.usd) delete texts[key];
    });
    const values = name === "cluster" ? clusters : axis.values(run, node);
    return { command: "curve", texts: texts, key: axis.key,
      values: values.map(function (value) { return value + (units[name] || ""); }) };
  }

  // Returns the questions for one state of the controls, by name, in the order of the answers.
  lambcast.questionsOf = function (run, node, clusters) {
    const texts = textsOf(run), questions = { run: { command: "simulate", texts: texts } };
    if (clusters === null) questions.presets = { command: "presets" };
    questions.plain = { command: "simulate", texts: plainTextsOf(run) };
    if (lambcast.isAdvised(run)) questions.advice = { command: "advise", texts: texts };
    if (lambcast.axisNameOf(run) !== "cluster" || clusters !== null)
      questions.curve = curveOf(run, node, clusters);
    return questions;
  };
  const mapRates = [1, 2, 5, 10, 25, 50, 100, 200, 400, 800];
  lambcast.mapAxes = function (node) { return { x: mapRates, y: powers(2 * node, 128 * node) }; };
  // Returns the questions that wait until the others are drawn.
  lambcast.laterOf = function (run, node, inputs) {
    const questions = {};
    if (lambcast.isCompressed(run)) lambcast.mapAxes(node).y.forEach(function (gpus, row) {
      questions["map" + row] = { command: "curve", key: settings.nic,
        texts: Object.assign(textsOf(run), { gpus: String(gpus) }),
        values: mapRates.map(function (rate) { return rate + units.nic; }) };
    });
    if (inputs) questions.inputs = { command: "sensitivity", texts: textsOf(run) };
    return questions;
  };
  lambcast.filesOf = function (run) {
    const files = {};
    if (run.cluster === "own") files[own.cluster] = run.cluster_text;
    if (run.model === "own") files[own.model] = run.model_text;
    if (run.config_text !== "") files[own.config] = run.config_text;
    return files;
  };

  lambcast.commandOf = function (run) {
    const texts = textsOf(run);
    const words = ["lambcast", lambcast.isAdvised(run) ? "advise" : "simulate"];
    Object.keys(texts).forEach(function (key) {
      if (key.includes(".")) words.push("--set", key + "=" + texts[key]);
      else words.push("--" + key.replace(/_/g, "-"), texts[key]);
    });
    return words.join(" ");
  };
  // Returns a file for `lambcast sweep`: the run, at each value of the chosen axis, next to its
  // plain optimizer.
  lambcast.sweepFileOf = function (run, node, clusters) {
    const curve = curveOf(run, node, clusters), plain = plainTextsOf(run);
    const said = function (key, value) { return (key.includes(".") ? JSON.stringify(key) : key) + " = " + JSON.stringify(value); };
    const isShared = function (key) { return curve.texts[key] === plain[key] && key !== curve.key; };
    const part = function (texts) {
      const lines = Object.keys(texts).filter(function (key) { return !isShared(key) && key !== curve.key; })
        .map(function (key) { return said(key, [texts[key]]); });
      if (curve.key !== "freeze_step" || texts.freeze_step) lines.push(said(curve.key, curve.values));
      return "\n[[part]]\n[part.grid]\n" + lines.join("\n") + "\n";
    };
    return "# lambcast sweep FILE.toml --out DIR\nname = \"my-cluster\"\n\n[base]\n" +
      Object.keys(plain).filter(isShared).map(function (key) { return said(key, plain[key]); }).join("\n") + "\n" +
      part(curve.texts) + (lambcast.isCompressed(run) ? part({ optimizer: plain.optimizer, exchange: "all_reduce" }) : "");
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

  // ---- files ----

  // Returns what a dropped text is: a "cluster", a "model", a DeepSpeed "config" or a "log".
  lambcast.kindOf = function (text) {
    let json = null;
    try { json = JSON.parse(text); } catch { json = null; }
    if (json === null) return /^\s*(\[(node|nic|topology|stack)\]|device\s*=|nic\s*=|name\s*=)/m.test(text) ? "cluster" : "log";
    const has = function (keys) { return keys.some(function (key) { return key in json; }); };
    if (has(["train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "zero_optimization",
      "fp16", "bf16", "optimizer"])) return "config";
    return has(["model_type", "architectures", "hidden_size", "n_embd", "d_model", "num_hidden_layers"]) ? "model" : "log";
  };
})();
