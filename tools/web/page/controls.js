// The controls of the page. Each one has a label, and reports its changes.
"use strict";

(function () {
  const make = lambcast.make;
  const powers = function (low, high) {
    const all = [];
    for (let value = low; value <= high; value *= 2) all.push(value);
    return all;
  };
  const nicRates = [1, 2, 4, 5, 8, 10, 16, 20, 25, 40, 50, 80, 100, 150, 200, 300, 400, 800];
  const optimizers = [["onebit_lamb", "1-bit LAMB"], ["onebit_adam", "1-bit Adam"],
    ["zero_one_adam", "0/1 Adam"], ["lamb", "LAMB"], ["adam", "Adam"], ["adamw", "AdamW"], ["lion", "Lion"]];
  const exchanges = [["all_reduce", "none: all-reduce"], ["onebit", "1 bit"], ["int4", "4-bit integers"],
    ["int8", "8-bit integers"], ["fp8", "8-bit floats"], ["qgz", "qgZ (ZeRO++)"],
    ["powersgd:4", "PowerSGD, rank 4"], ["topk:1%", "top 1 %"], ["randomk:1%", "random 1 %"],
    ["local:16", "DiLoCo, every 16 steps"]];

  function field(key, label, inside, aside) {
    const said = make("label", { htmlFor: key }, [label, make("span", { id: key + "_aside" }, aside ? [aside] : [])]);
    return make("div", { className: "field" }, [said].concat(inside));
  }
  function select(key, options) {
    return make("select", { id: key, name: key }, options.map(function (option) {
      return make("option", { value: option[0] }, [option[1]]);
    }));
  }
  // Returns the index of the value in `all` that is nearest to `value` by ratio.
  function nearest(all, value) {
    let best = 0;
    all.forEach(function (one, i) {
      const far = function (v) { return Math.abs(Math.log((v + 1) / (value + 1))); };
      if (far(one) < far(all[best])) best = i;
    });
    return best;
  }

  class Controls {
    // `presets` are those of the engine; `changed` is called with the run after each change.
    constructor(form, presets, run, changed) {
      this.form = form;
      this.presets = presets;
      this.changed = changed;
      this.run = run;
      this.values = { gpus: [], global_batch: powers(64, 65536), micro_batch: powers(1, 512),
        nic: nicRates, freeze_step: [0, 1, 2, 5, 10, 15, 20, 25, 30, 40, 50],
        steps: [100, 300, 1000, 3000, 5993, 10000, 30000, 100000, 300000] };
      this.build();
      this.show();
    }
    build() {
      const name = function (c) { return c.name; };
      const size = function (m) {
        return m.name + ": " + (m.parameters >= 1e9 ? lambcast.number(Number((m.parameters / 1e9).toPrecision(3)))
          + " billion" : lambcast.number(Number((m.parameters / 1e6).toPrecision(3))) + " million");
      };
      const choices = function (list, text, last) {
        return list.map(function (one) { return [one.name, text(one)]; }).concat([["own", last]]);
      };
      this.form.append(
        field("cluster", "Cluster", [select("cluster", choices(this.presets.clusters, name,
          "own description (TOML) ...")), this.own("cluster", "cluster description (TOML)", ".toml")]),
        this.number("nic", "NIC bandwidth, Gbit/s", "empty: as it is", "any"),
        this.number("gpus", "GPUs"),
        field("model", "Model", [select("model", choices(this.presets.models, size,
          "own config.json ...")), this.own("model", "config.json of Hugging Face", ".json")]),
        this.number("global_batch", "Batch", "samples a step"),
        this.number("micro_batch", "Micro batch", "samples a GPU"),
        field("optimizer", "Optimizer", [select("optimizer", optimizers)]),
        field("exchange", "Gradient exchange", [select("exchange", exchanges)], "of plain optimizers"),
        this.number("freeze_step", "Warm-up (freeze_step)", "% of the steps", "any"),
        this.number("steps", "Steps of the run"));
      this.form.addEventListener("input", (event) => this.take(event.target));
      this.form.addEventListener("submit", function (event) { event.preventDefault(); });
      this.drop();
    }
    own(key, label, accept) {
      const text = make("textarea", { id: key + "_text", name: key + "_text", spellcheck: false,
        "aria-label": label });
      const file = make("input", { type: "file", accept: accept, "aria-label": "file: " + label });
      file.addEventListener("change", () => {
        if (file.files.length > 0) this.read(file.files[0], key);
      });
      return make("div", { className: "own", id: key + "_own", hidden: true }, [text, file]);
    }
    number(key, label, aside, step) {
      const slide = make("input", { type: "range", min: 0, step: 1, "aria-label": label + ", slider",
        name: key + "_slide", id: key + "_slide" });
      const box = make("input", { type: "number", id: key, name: key, min: 0, step: step || 1 });
      return field(key, label, [make("div", { className: "pair" }, [slide, box])], aside);
    }
    // Returns the selected cluster; nothing for a description of the user.
    preset() { return this.presets.clusters.find((c) => c.name === this.run.cluster); }
    nodeSize() { return this.preset() ? this.preset().gpus_per_node : 8; }
    // Shows the run in all controls.
    show() {
      const run = this.run, of = (key) => this.form.elements[key];
      this.values.gpus = powers(this.nodeSize(), 1024 * this.nodeSize());
      ["cluster", "model", "optimizer", "exchange", "cluster_text", "model_text"].forEach(function (key) {
        if (of(key).value !== run[key]) of(key).value = run[key];
      });
      Object.keys(this.values).forEach((key) => {
        const all = this.values[key], slide = of(key + "_slide");
        slide.max = all.length - 1;
        const shown = run[key] === "" ? this.ownRate() : Number(run[key]);
        slide.value = nearest(all, shown);
        slide.setAttribute("aria-valuetext", run[key] === "" ? "the cluster's own" : String(run[key]));
        if (of(key).value !== String(run[key])) of(key).value = run[key];
      });
      const preset = this.preset();
      of("nic").placeholder = preset ? lambcast.number(preset.nic_Gbps) : "";
      document.getElementById("cluster_aside").textContent = preset ? preset.gpus_per_node + " x " +
        preset.device + ", " + preset.nics + " x " + lambcast.number(preset.nic_Gbps) + " Gbit/s" : "";
      document.getElementById("cluster_own").hidden = run.cluster !== "own";
      document.getElementById("model_own").hidden = run.model !== "own";
      const onebit = lambcast.isOnebit(run);
      of("exchange").disabled = onebit;
      of("freeze_step").disabled = of("freeze_step_slide").disabled = !onebit;
    }
    ownRate() { return this.preset() ? this.preset().nic_Gbps : 100; }
    take(control) {
      const key = control.name.replace(/_slide$/, "");
      if (!(key in this.run)) return;
      const before = this.run.cluster;
      if (control.type === "range") this.run[key] = this.values[key][Number(control.value)];
      else if (control.type === "number")
        this.run[key] = control.value === "" ? (key === "nic" ? "" : this.run[key]) : Number(control.value);
      else this.run[key] = control.value;
      if (control.type === "number" && control.value === "" && key !== "nic") return;
      if (key === "cluster" && this.run.cluster !== "own") this.run.nic = "";
      if (key === "cluster" && this.run.cluster === "own" && this.run.cluster_text === "") this.begin(before);
      this.show();
      this.changed();
    }
    // A description of the user starts with the text of the preset that was shown.
    begin(preset) {
      const found = this.presets.clusters.find(function (c) { return c.name === preset; });
      if (found) this.run.cluster_text = found.text;
    }
    async read(file, key) {
      this.run[key + "_text"] = await file.text();
      this.run[key] = "own";
      this.show();
      this.changed();
    }
    // Handles a dropped file: JSON is a model, any other file a cluster.
    drop() {
      const body = document.body;
      body.addEventListener("dragover", function (event) {
        event.preventDefault();
        body.classList.add("dropping");
      });
      body.addEventListener("dragleave", function () { body.classList.remove("dropping"); });
      body.addEventListener("drop", (event) => {
        event.preventDefault();
        body.classList.remove("dropping");
        const file = event.dataTransfer.files[0];
        if (file) this.read(file, /\.json$/i.test(file.name) ? "model" : "cluster");
      });
    }
  }
  lambcast.Controls = Controls;
})();
