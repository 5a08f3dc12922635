// The page in headless Chromium, driven by the DevTools protocol over a pipe. The test moves its
// controls and compares each verdict with `lambcast`. It checks that there are no console messages
// and no requests, that all controls have labels, and that nothing scrolls sideways at 390 pixels.
// Exits with 77 if there is no Chromium.
//
//   node page_test.js PAGE.html LAMBCAST [FOLDER_FOR_SCREENSHOTS]
/* eslint-env node */
"use strict";

const fs = require("fs"), os = require("os"), path = require("path");
const { spawn, spawnSync } = require("child_process");

const [page, program, pictures] = process.argv.slice(2);
const browser = ["chromium", "chromium-browser", "google-chrome"].find(function (name) {
  return spawnSync("which", [name]).status === 0;
});
if (!browser) {
  console.log("skipped: no chromium here");
  process.exit(77);
}
const failures = [];
function check(what, passes, found) {
  if (!passes) failures.push(`${what}: ${JSON.stringify(found)}`);
}

// A browser with one page: send() calls a method of the protocol; `seen` collects unwanted events.
class Browser {
  constructor(folder) {
    this.child = spawn(browser, ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
      "--remote-debugging-pipe", `--user-data-dir=${folder}`], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    this.calls = new Map();
    this.seen = [];
    this.last = 0;
    let rest = "";
    this.child.stdio[4].on("data", (data) => {
      const messages = (rest + data).split("\0");
      rest = messages.pop();
      messages.forEach((text) => this.take(JSON.parse(text)));
    });
  }
  take(message) {
    if (message.id) {
      const [resolve, reject] = this.calls.get(message.id);
      this.calls.delete(message.id);
      if (message.error) reject(new Error(message.error.message));
      else resolve(message.result);
    } else if (["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"].includes(message.method)) {
      this.seen.push(JSON.stringify(message.params).slice(0, 400));
    } else if (message.method === "Network.requestWillBeSent") {
      const url = message.params.request.url;
      if (!url.startsWith("file:///") && !url.startsWith("blob:") && !url.startsWith("data:")) this.seen.push(`request ${url}`);
      if (url.startsWith("file:///") && !url.includes(path.basename(page))) this.seen.push(`request ${url}`);
    }
  }
  send(method, params = {}) {
    const id = ++this.last, message = { id, method, params };
    if (this.session) message.sessionId = this.session;
    this.child.stdio[3].write(`${JSON.stringify(message)}\0`);
    return new Promise((resolve, reject) => this.calls.set(id, [resolve, reject]));
  }
  async open(url) {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    this.session = (await this.send("Target.attachToTarget", { targetId, flatten: true })).sessionId;
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await this.send(`${domain}.enable`);
    await this.send("Page.navigate", { url });
  }
  async run(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception.description);
    return result.value;
  }
  async size(width, height) {
    await this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
  }
  async picture(name) {
    if (!pictures) return;
    const { data } = await this.send("Page.captureScreenshot", { captureBeyondViewport: true });
    fs.writeFileSync(path.join(pictures, name), Buffer.from(data, "base64"));
  }
}

// Functions in the page that set controls like a user, and wait for the answer to the last change.
const helpers = `
  window.answer = function () {
    return new Promise(function (resolve) { addEventListener("answered", resolve, { once: true }); });
  };
  window.drop = async function (name, text) {
    const given = new DataTransfer(), wanted = window.answer();
    given.items.add(new File([text], name));
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: given, bubbles: true }));
    await wanted;
    return { said: document.getElementById("files_said").textContent, run: lambcast.controls.run,
      verdict: document.getElementById("verdict").textContent, command: document.getElementById("command-text").textContent,
      error: lambcast.answers.run.error || "" };
  };
  window.longest = 0;
  new PerformanceObserver(function (list) {
    list.getEntries().forEach(function (task) { window.longest = Math.max(window.longest, task.duration); });
  }).observe({ type: "longtask" });
  window.put = async function (values) {
    const all = document.getElementById("controls").elements, wanted = window.answer(), begun = performance.now();
    Object.entries(values).forEach(function (one) {
      all[one[0]].value = one[1];
      all[one[0]].dispatchEvent(new Event("input", { bubbles: true }));
    });
    const patience = new Promise(function (resolve, reject) {
      setTimeout(function () { reject(new Error("no answer to " + JSON.stringify(values))); }, 60000);
    });
    await Promise.race([wanted, patience]);
    await Promise.race([new Promise(function (resolve) { requestAnimationFrame(resolve); }), patience]);
    const run = lambcast.answers.run;
    return { ms: performance.now() - begun, command: document.getElementById("command-text").textContent,
      verdict: document.getElementById("verdict").textContent, error: run.error || "" };
  };`;

const states = [{ gpus_slide: "4" }, { cluster: "paper-edr100-v100" }, { nic: "100" }, { freeze_step: "16.7" },
  { model: "gpt2-xl", micro_batch: "8" }, { optimizer: "onebit_adam" }, { cluster: "hgx-h100-ndr" }, { gpus: "64" },
  { optimizer: "adam" }, { exchange: "int4" }, { model: "resnet50" }, { gpus: "30" }, { gpus: "32" },
  { cluster: "commodity-10gbe" }, { optimizer: "zero_one_adam" }, { global_batch: "4096" }, { steps: "100" },
  { steps: "10000" }, { model: "gpt3-175b" }, { model: "bert-base" }, { optimizer: "onebit_lamb", backend: "mpi", nodes: "2" },
  { zero_stage: "1" }, { zero_stage: "0", nics: "2" }, { node_gpus: "4", usd: "1.5" }, { backend: "nccl", node_gpus: "", nics: "" }];
const words = { yes: "Compression pays:", no: "Compression does not pay:", hardly: "No difference:",
  cannot_tell: "Not certain:", does_not_fit: "Compression does not pay: it does not fit:", not_judged: "Not judged: " };

function compareWithProgram(shown) {
  const command = shown.command.split(" ").slice(1).concat("--format", "json");
  const ran = spawnSync(program, command, { encoding: "utf8", maxBuffer: 1 << 26 });
  if (ran.status !== 0) {
    check(shown.command, shown.verdict === ran.stderr.trim().replace(/^lambcast: /, ""), [shown.verdict, ran.stderr]);
    return;
  }
  const answer = JSON.parse(ran.stdout), of = answer.run || answer, verdict = answer.run ? of.verdict : of.answer;
  const speedup = answer.run ? of.speedup_vs_baseline : of.speedup;
  check(`${shown.command}: word`, verdict === null || shown.verdict.startsWith(words[verdict]), [shown.verdict, verdict]);
  if (["yes", "no", "hardly", "cannot_tell"].includes(verdict)) {
    const interval = `${speedup.toFixed(2)}x (${of.speedup_low.toFixed(2)} to ${of.speedup_high.toFixed(2)}x)`;
    check(`${shown.command}: interval`, shown.verdict.includes(interval), [shown.verdict, interval]);
  }
}

async function main() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "lambcast-page-"));
  const shown = new Browser(folder), begun = Date.now();
  try {
    await drive(shown, begun);
  } finally {
    shown.child.kill();
    await new Promise(function (resolve) { shown.child.on("exit", resolve); });
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function drive(shown, begun) {
  await shown.open(`file://${path.resolve(page)}`);
  await shown.size(1280, 900);
  await shown.run(`new Promise(function (resolve) {
    const look = function () {
      if (document.documentElement.classList.contains("ready")) resolve(); else setTimeout(look, 5);
    };
    look();
  })`);
  const ready = await shown.run("performance.now()");
  await shown.run(helpers);
  await shown.picture("page-1280.png");

  const first = await shown.run("({ command: document.getElementById('command-text').textContent, " +
    "verdict: document.getElementById('verdict').textContent })");
  compareWithProgram(first);
  for (const state of states) compareWithProgram(await shown.run(`put(${JSON.stringify(state)})`));

  // Measures the time from a moved control to the next frame with its verdict and curve.
  await shown.run("put({ cluster: 'commodity-10gbe', model: 'bert-large', optimizer: 'onebit_lamb', gpus: '32' })");
  const times = [];
  for (let i = 0; i < 20; ++i) times.push((await shown.run(`put({ nic: '${5 + i}' })`)).ms);
  times.sort(function (a, b) { return a - b; });
  // The last of several quick movements counts.
  const rapid = await shown.run("(async function () { for (let i = 1; i < 20; ++i) put({ nic: String(i) }); " +
    "return put({ nic: '42' }); })()");
  check("the last question", rapid.command.includes("bandwidth=42Gbit/s"), rapid.command);

  // The keyboard moves a slider.
  await shown.run("document.getElementById('gpus_slide').focus()");
  const wanted = shown.run("answer().then(function () { return lambcast.controls.run.gpus; })");
  for (const type of ["keyDown", "keyUp"])
    await shown.send("Input.dispatchKeyEvent", { type, key: "ArrowRight", code: "ArrowRight", windowsVirtualKeyCode: 39 });
  check("an arrow key", await wanted === 64, await wanted);

  // A description of the user, and the address that restores it.
  const own = await shown.run("put({ cluster: 'own' })");
  check("an own cluster", own.verdict.includes("x ("), own.verdict);
  const wrong = await shown.run("put({ cluster_text: 'name = \"x\"\\n[nic]\\nbandwith = 1\\n' })");
  check("a wrong description", wrong.verdict.startsWith("my-cluster.toml:"), wrong.verdict);
  const again = await shown.run("(async function () { const before = lambcast.addressOf(lambcast.controls.run); " +
    "const back = lambcast.addressOf(lambcast.runOf(before)); return [before, back]; })()");
  check("the address", again[0] === again[1] && again[0].includes("cluster_text"), again);

  // Sentences and rows of the choices along each axis.
  const restart = "put({ cluster: 'commodity-10gbe', model: 'bert-large', optimizer: 'onebit_lamb', gpus: '32', " +
    "micro_batch: '16', global_batch: '16384', usd: '1.5' })";
  await shown.run(restart);
  const chosen = function (axis) {
    return shown.run(`(async function () { const all = document.getElementById("axis"), wanted = answer(); all.value = "${axis}";
      all.dispatchEvent(new Event("change")); await wanted;
      return [document.getElementById("best").textContent, document.querySelectorAll(".choices tbody tr").length]; })()`);
  };
  for (const [axis, sentence, rows] of [["global_batch", /^By batch: [a-z ]+ at [0-9]+/, 7],
    ["freeze_step", /Fastest by warm-up: 2 %, .* Cheapest: 2 %, [0-9]+ USD a run\./, 9], ["cluster", /^Fastest by cluster: .* Cheapest: /, 30],
    ["nic", /^By NIC bandwidth: pays at 1 Gbit\/s/, 18]]) {
    const found = await chosen(axis);
    check(`choices by ${axis}`, sentence.test(found[0]) && found[1] >= rows, found);
  }
  const sweep = await shown.run("lambcast.sweepFileOf(lambcast.controls.run, 8, [])");
  const file = path.join(os.tmpdir(), `lambcast-page-${process.pid}.toml`);
  fs.writeFileSync(file, sweep);
  const swept = spawnSync(program, ["sweep", file, "--dry-run"], { encoding: "utf8" });
  fs.rmSync(file);
  check("the sweep file", swept.status === 0, [sweep, swept.stderr]);

  // Files of the user: a DeepSpeed file fills the controls, a log calibrates, other texts are refused.
  const filled = await shown.run(`drop("ds.json", ${JSON.stringify(JSON.stringify({ train_batch_size: 8192,
    train_micro_batch_size_per_gpu: 32, steps_per_print: 100, no_such_key: 1,
    optimizer: { type: "OneBitAdam", params: { lr: 1e-3, freeze_step: 1000 } }, fp16: { enabled: true } }))})`);
  check("a DeepSpeed file", filled.run.optimizer === "onebit_adam" && filled.run.micro_batch === 32 && filled.run.global_batch === 8192 &&
    filled.said.includes("no_such_key") && filled.command.includes("--config ds_config.json") && filled.error === "", filled);
  const log = fs.readFileSync(path.join(__dirname, "../../validate/importers/fixtures/nccl_all_reduce.txt"), "utf8");
  await shown.run("put({ cluster: 'hgx-h100-ndr', gpus: '32' })");
  const calibrated = await shown.run(`drop("nccl.log", ${JSON.stringify(log)})`);
  check("a log", calibrated.said.startsWith("The cluster is calibrated to nccl.log.") && calibrated.error === "", calibrated);
  const other = await shown.run("drop('a.txt', 'hello')");
  check("a text that is no log", other.said.startsWith("a.txt"), other.said);
  await shown.run("put({ zero_stage: '0' })");
  const matters = await shown.run(`new Promise(function (resolve) {
    document.getElementById("inputs").open = true;
    const look = function () {
      const text = document.getElementById("inputs-said").textContent;
      if (text.startsWith("Computing")) setTimeout(look, 20); else resolve(text);
    };
    look();
  })`);
  check("which number matters", /10 % more/.test(matters), matters);

  const bare = await shown.run("Array.from(document.querySelectorAll('input,select,textarea,button')).filter(" +
    "function (e) { return !e.getAttribute('aria-label') && !(e.labels && e.labels.length) && !e.textContent; })" +
    ".map(function (e) { return e.id; })");
  check("labels", bare.length === 0, bare);
  await shown.run("put({ cluster: 'commodity-25gbe', gpus: '32' })");
  await shown.size(390, 900);
  const wide = await shown.run("new Promise(function (r) { setTimeout(r, 300); }).then(function () { " +
    "return document.documentElement.scrollWidth; })");
  check("390 pixels", wide <= 390, wide);
  await shown.picture("page-390.png");
  await shown.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: "dark" }] });
  await shown.size(1280, 900);
  await shown.run("new Promise(function (r) { setTimeout(r, 300); })");
  await shown.picture("page-dark.png");
  check("console and network", shown.seen.length === 0, shown.seen);
  console.log(`first verdict ${Math.round(ready)} ms after navigation, ${Date.now() - begun} ms in all; moved control to ` +
    `verdict and curve: median ${Math.round((times[9] + times[10]) / 2)} ms of ${Math.round(times[0])} to ${Math.round(times[19])}; longest task of the ` +
    `main thread ${Math.round(await shown.run("longest"))} ms`);
}

main().catch(function (error) { failures.push(error.stack); }).then(function () {
  for (const failure of failures) console.log(`FAILED: ${failure}`);
  console.log(`${failures.length} failures`);
  process.exitCode = failures.length > 0 ? 1 : 0;
});
