// The controls of the page. Each one has a label, and reports its changes.
"use strict";

(function () {
  const make = lambcast.make;
  const powers = lambcast.powers;
  const optimizers = [["onebit_lamb", "1-bit LAMB"], ["onebit_adam", "1-bit Adam"],
    ["zero_one_adam", "0/1 Adam"], ["lamb", "LAMB"], ["adam", "Adam"], ["adamw", "AdamW"], ["lion", "Lion"]];
  const exchanges = [["all_reduce", "none: all-reduce"], ["onebit", "1 bit"], ["int4", "4-bit integers"],
    ["int8", "8-bit integers"], ["fp8", "8-bit floats"], ["qgz", "qgZ (ZeRO++)"],
    ["powersgd:4", "PowerSGD, rank 4"], ["topk:1%", "top 1 %"], ["randomk:1%", "random 1 %"],
    ["local:16", "DiLoCo, every 16 steps"]];
  const backends = [["nccl", "NCCL"], ["mpi", "MPI"], ["compressed", "compressed"]];
  const stages = ["0", "1", "2", "3"].map(function (stage) { return [stage, stage]; });

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
    // `presets` are those of the engine; `changed` is called after each change, and `dropped` with
    // each file of the user.
    constructor(form, presets, run, changed, dropped) {
      this.form = form;
      this.presets = presets;
      this.changed = changed;
      this.dropped = dropped;
      this.run = run;
      this.values = { gpus: [], global_batch: powers(64, 65536), micro_batch: powers(1, 512),
        nic: lambcast.nicRates, freeze_step: [0, 1, 2, 5, 10, 15, 20, 25, 30, 40, 50],
        steps: [100, 300, 1000, 3000, 5993, 10000, 30000, 100000, 300000] };
      this.build();
      this.show();
    }
    build() {
      const machine = function (c) {
        return c.name + ": " + c.gpus_per_node + " x " + c.device + ", " + c.nics + " x " + lambcast.number(c.nic_Gbps) + " Gbit/s";
      };
      const size = function (m) {
        return m.name + ": " + (m.parameters >= 1e9 ? lambcast.number(Number((m.parameters / 1e9).toPrecision(3)))
          + " billion" : lambcast.number(Number((m.parameters / 1e6).toPrecision(3))) + " million");
      };
      const choices = function (list, text, last) {
        return list.map(function (one) { return [one.name, text(one)]; }).concat([["own", last]]);
      };
      this.form.append(
        field("cluster", "Cluster", [select("cluster", choices(this.presets.clusters, machine,
          "own description (TOML) ...")), this.own("cluster", "cluster description (TOML)")]),
        this.number("nic", "NIC bandwidth, Gbit/s", "empty: as it is", "any"),
        this.number("gpus", "GPUs"),
        this.boxes([["nodes", "Nodes"], ["node_gpus", "GPUs a node"], ["nics", "NICs a node"]]),
        field("model", "Model", [select("model", choices(this.presets.models, size,
          "own config.json ...")), this.own("model", "config.json of Hugging Face")]),
        this.number("global_batch", "Batch", "samples a step"),
        this.number("micro_batch", "Micro batch", "samples a GPU"),
        field("optimizer", "Optimizer", [select("optimizer", optimizers)]),
        field("exchange", "Gradient exchange", [select("exchange", exchanges)], "of plain optimizers"),
        this.number("freeze_step", "Warm-up (freeze_step)", "% of the steps", "any"),
        this.number("steps", "Steps of the run"),
        make("div", { className: "boxes" }, [field("zero_stage", "ZeRO stage", [select("zero_stage", stages)]),
          field("backend", "Backend", [select("backend", backends)]),
          field("usd", "USD/GPU hour", [this.box("usd", "any")])]),
        field("files", "Your files", [this.files(), make("div", { id: "files_said", role: "status" })]));
      this.form.addEventListener("input", (event) => this.take(event.target));
      this.form.addEventListener("submit", function (event) { event.preventDefault(); });
      this.drop();
    }
    own(key, label) {
      const text = make("textarea", { id: key + "_text", name: key + "_text", spellcheck: false,
        "aria-label": label });
      return make("div", { className: "own", id: key + "_own", hidden: true }, [text]);
    }
    files() {
      const file = make("input", { type: "file", id: "files", multiple: true });
      file.addEventListener("change", () => { this.dropped(Array.from(file.files)); file.value = ""; });
      return make("div", {}, [make("p", { className: "hint" }, ["DeepSpeed JSON, config.json, a cluster's TOML, or a log of " +
        "nccl-tests or of training, which calibrates. Or drop them on the page."]), file]);
    }
    box(key, step) { return make("input", { type: "number", id: key, name: key, min: 0, step: step || 1 }); }
    boxes(all) {
      return make("div", { className: "boxes" }, all.map((one) => field(one[0], one[1], [this.box(one[0])])));
    }
    number(key, label, aside, step) {
      const slide = make("input", { type: "range", min: 0, step: 1, "aria-label": label + ", slider",
        name: key + "_slide", id: key + "_slide" });
      return field(key, label, [make("div", { className: "pair" }, [slide, this.box(key, step)])], aside);
    }
    // Returns the selected cluster; nothing for a description of the user.
    preset() { return this.presets.clusters.find((c) => c.name === this.run.cluster); }
    // Returns the GPUs of a node; `node` is set from the answers for descriptions of the user.
    nodeSize() {
      return Number(this.run.node_gpus) || (this.preset() ? this.preset().gpus_per_node : this.node || 8);
    }
    // Shows the run in all controls.
    show() {
      const run = this.run, of = (key) => this.form.elements[key];
      this.values.gpus = powers(this.nodeSize(), 1024 * this.nodeSize());
      ["cluster", "model", "optimizer", "exchange", "zero_stage", "backend", "cluster_text", "model_text"].forEach(function (key) {
        if (of(key).value !== run[key]) of(key).value = run[key];
        if (of(key).tagName === "SELECT" && of(key).selectedIndex < 0) {  // a value of a DeepSpeed file
          of(key).append(make("option", { value: run[key] }, [run[key]]));
          of(key).value = run[key];
        }
      });
      ["node_gpus", "nics", "usd"].forEach(function (key) {
        if (of(key).value !== String(run[key])) of(key).value = run[key];
      });
      const nodes = run.gpus / this.nodeSize();
      of("nodes").value = Number.isInteger(nodes) ? nodes : "";
      of("nodes").placeholder = nodes < 1 ? "part" : "";
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
      of("node_gpus").placeholder = this.nodeSize();
      of("nics").placeholder = preset ? preset.nics : "";
      of("usd").placeholder = preset && preset.usd_per_gpu_hour ? lambcast.number(preset.usd_per_gpu_hour) : "none";
      document.getElementById("cluster_own").hidden = run.cluster !== "own";
      document.getElementById("model_own").hidden = run.model !== "own";
      const onebit = lambcast.isOnebit(run);
      of("exchange").disabled = onebit;
      of("freeze_step").disabled = of("freeze_step_slide").disabled = of("backend").disabled = !onebit;
    }
    ownRate() { return this.preset() ? this.preset().nic_Gbps : 100; }
    take(control) {
      const key = control.name.replace(/_slide$/, ""), run = this.run, before = run.cluster;
      const empty = control.type === "number" && control.value === "";
      if (key === "nodes" && !empty) run.gpus = Number(control.value) * this.nodeSize();
      else if (!(key in run) || (empty && lambcast.defaults[key] !== "")) return;
      else if (control.type === "range") run[key] = this.values[key][Number(control.value)];
      else run[key] = control.type === "number" && !empty ? Number(control.value) : control.value;
      if (key === "cluster" && run.cluster !== "own") run.nic = run.nics = run.node_gpus = "";
      if (key === "cluster" && run.cluster === "own" && run.cluster_text === "") this.begin(before);
      this.show();
      this.changed();
    }
    // A description of the user starts with the text of the preset that was shown.
    begin(preset) {
      const found = this.presets.clusters.find(function (c) { return c.name === preset; });
      if (found) this.run.cluster_text = found.text;
    }
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
        this.dropped(Array.from(event.dataTransfer.files));
      });
    }
  }
  lambcast.Controls = Controls;
})();
