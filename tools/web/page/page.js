// Runs the page: sends the questions of the run to the engine in its Worker, and draws the answers as
// they arrive.
/* global lambcastWorker */
"use strict";

(function () {
  const make = lambcast.make, show = lambcast.show;
  const place = function (id) { return document.getElementById(id); };
  const worker = lambcastWorker;
  let controls = null, presets = null;
  const run = lambcast.runOf(location.hash.slice(1));

  // ---- asking ----

  // Answers of the last run: of (the run), node (its GPUs a node), and the answers by name.
  let answers = null, id = 0, onceCount = 0, last = "", later = 0, keeping = 0;
  const once = new Map();  // resolvers of askOnce(), by ids below zero

  const nodeSize = function () { return controls ? controls.nodeSize() : 8; };
  const clusters = function () { return presets && presets.clusters.map(function (c) { return c.name; }); };
  function ask() {
    const questions = lambcast.questionsOf(run, nodeSize(), clusters());
    clearTimeout(later);
    answers = { of: Object.assign({}, run), node: nodeSize() };
    last = Object.keys(questions).at(-1);
    place("command-text").textContent = lambcast.commandOf(run);
    place("verdict").classList.add("stale");
    worker.postMessage({ id: ++id, files: lambcast.filesOf(run), questions: questions });
  }
  // Asks what can wait: the map, and the numbers that matter if they are shown.
  function askLater() {
    worker.postMessage({ id: id, files: lambcast.filesOf(answers.of),
      questions: lambcast.laterOf(answers.of, answers.node, run.open === "inputs") });
  }
  // Returns the answer to one question, which no other run replaces.
  function askOnce(question, files) {
    return new Promise(function (resolve) {
      const own = -++onceCount;
      once.set(own, resolve);
      worker.postMessage({ id: own, keep: true, files: files, questions: { once: question } });
    });
  }
  function keep() {
    clearTimeout(keeping);
    keeping = setTimeout(function () {
      history.replaceState(null, "", "#" + lambcast.addressOf(run));
    }, 300);
  }

  function showPresets(found) {
    presets = found.answer;
    lambcast.parts = presets.parts;
    place("version").textContent = "lambcast " + presets.version + ", forecast in this page: nothing leaves your machine.";
    controls = lambcast.controls = new lambcast.Controls(place("controls"), presets, run, changed, function (files) {
      lambcast.takeFiles(files, run, askOnce, place("files_said"), function () {
        controls.show();
        changed();
      });
    });
    // The curve of this run needs the presets.
    if (nodeSize() !== answers.node || lambcast.axisNameOf(run) === "cluster") ask();
  }
  function changed() {
    ask();
    keep();
  }
  const draws = {
    run: function () {
      if (answers.run.answer && controls) controls.node = answers.run.answer.inputs.gpus_per_node;
      show.verdict(answers);
      document.documentElement.classList.add("ready");
    },
    plain: function () {
      show.bars(answers);
      show.memory(answers);
      if (!lambcast.isAdvised(answers.of)) draws.advice();
    },
    advice: function () {
      show.numbers(answers);
      show.certain(answers);
    },
    curve: function () { show.curve(answers); },
    presets: function () { showPresets(answers.presets); },
    inputs: function () { show.inputs(answers); },
  };
  worker.onmessage = function (event) {
    const of = event.data;
    if (of.failed) { place("verdict").textContent = "The simulator does not start: " + of.failed; return; }
    lambcast.moduleBytes = of.bytes;
    if (once.has(of.id)) {
      once.get(of.id)(of.answer);
      once.delete(of.id);
    } else if (of.name === "run" && of.id !== id) {
      show.verdict({ run: of.answer });  // a control is still moving
      place("verdict").classList.add("stale");
    } else if (of.id === id) {
      answers[of.name] = of.answer;
      (draws[of.name] || function () { show.map(answers); })();
      if (of.name === last) {
        last = "";
        lambcast.answers = answers;
        place("map").parentElement.hidden = !lambcast.isCompressed(answers.of);
        dispatchEvent(new Event("answered"));
        later = setTimeout(askLater, 250);
      }
    }
  };
  worker.onerror = function (event) { place("verdict").textContent = "The simulator does not start: " + event.message; };
  ask();
  addEventListener("hashchange", function () {
    Object.assign(run, lambcast.runOf(location.hash.slice(1)));
    controls.show();
    ask();
  });
  Object.entries(lambcast.axes).forEach(function (axis) {
    place("axis").append(make("option", { value: axis[0] }, [axis[1].title]));
  });
  place("axis").addEventListener("change", function () {
    run.axis = place("axis").value;
    changed();
  });
  place("inputs").addEventListener("toggle", function () {
    run.open = place("inputs").open ? "inputs" : "";
    keep();
    if (run.open && last === "") askLater();
  });
  place("inputs").open = run.open === "inputs";

  // ---- copying and saving ----

  async function copy(text, done) {
    try {
      await navigator.clipboard.writeText(text);
      place("done").textContent = done;
    } catch {
      place("command-text").textContent = text;
      getSelection().selectAllChildren(place("command-text"));
      place("done").textContent = "Selected below: press Ctrl+C.";
    }
  }
  place("command").addEventListener("click", function () { copy(lambcast.commandOf(run), "The command is copied."); });
  place("sweep").addEventListener("click", function () {
    copy(lambcast.sweepFileOf(run, nodeSize(), clusters()), "The sweep file is copied: lambcast sweep FILE.toml --out DIR");
  });
  place("share").addEventListener("click", function () {
    copy(location.href.split("#")[0] + "#" + lambcast.addressOf(run), "The link is copied.");
  });
  place("picture").addEventListener("click", function () {
    const drawn = lambcast.drawnCurve();
    if (!drawn) return;
    const picture = make("canvas", { width: drawn.width, height: drawn.height + 60 });
    const context = picture.getContext("2d"), style = getComputedStyle(document.body);
    context.fillStyle = style.backgroundColor;
    context.fillRect(0, 0, picture.width, picture.height);
    context.fillStyle = style.color;
    context.font = "bold 18px \"DejaVu Sans\", Verdana, sans-serif";
    context.fillText(place("verdict").textContent, 10, 26, picture.width - 20);
    context.font = "12px \"DejaVu Sans\", Verdana, sans-serif";
    context.fillText(lambcast.commandOf(run), 10, 48, picture.width - 20);
    context.drawImage(drawn, 0, 60);
    const link = make("a", { href: picture.toDataURL("image/png"), download: "lambcast.png" });
    link.click();
    place("done").textContent = "The picture is saved.";
  });
})();
