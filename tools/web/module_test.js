// Compares the module of a page with the program: every preset model and cluster, texts equal and
// numbers within 1e-12. Then checks its memory after 2,000 questions.
//
//   node module_test.js PAGE.html LAMBCAST
/* eslint-env node */
/* global globalThis */
"use strict";

const fs = require("fs"), os = require("os"), path = require("path"), zlib = require("zlib");
const { spawnSync } = require("child_process");
const { nativeAnswer, difference } = require("./native.js");
require("./page/unpack.js");
require("./page/module.js");

const [page, program] = process.argv.slice(2);
const packed = /<script type="text\/plain" id=module>([^<]*)<\/script>/.exec(fs.readFileSync(page, "utf8"))[1];
const gzipped = globalThis.lambcastBytes(packed), bytes = zlib.gunzipSync(gzipped);
const engine = new globalThis.LambcastEngine(new WebAssembly.Module(bytes));
const failures = [];
// Whether two texts are equal, with numbers within 1e-6 of the larger: fits end at a tolerance.
function sameNumbers(one, other) {
  const words = function (text) { return text.split(/([-+]?[0-9][0-9.]*(?:e[-+]?[0-9]+)?)/); };
  const a = words(one), b = words(other);
  return a.length === b.length && a.every(function (word, i) {
    return word === b[i] || Math.abs(word - b[i]) <= 1e-6 * Math.max(Math.abs(word), Math.abs(b[i]));
  });
}

const presets = engine.ask({ command: "presets" }).answer;
const optimizers = [{ optimizer: "onebit_lamb", freeze_step: "20%" }, { optimizer: "adam", exchange: "int4" },
  { optimizer: "zero_one_adam", freeze_step: "15%" }, { optimizer: "lamb" }, { optimizer: "onebit_adam", freeze_step: "25%" },
  { optimizer: "adam", exchange: "powersgd:4", zero_stage: "1" }];
const asked = [];
for (let i = 0; i < presets.models.length + presets.clusters.length; ++i) {
  const model = presets.models[i % presets.models.length], cluster = presets.clusters[(7 * i) % presets.clusters.length];
  const gpus = String(cluster.gpus_per_node * Math.pow(2, i % 4)), chosen = optimizers[i % optimizers.length];
  asked.push({ command: chosen.freeze_step && i % 3 === 0 ? "advise" : "simulate", texts: Object.assign({
    model: model.name, cluster: cluster.name, gpus: gpus, micro_batch: "4", grad_accum: "8", steps: "10000" }, chosen) });
}
let refused = 0;
for (const question of asked) {
  const ours = engine.ask(question), native = nativeAnswer(program, question.command, question.texts);
  const found = difference(ours, native, 1e-12);
  refused += "error" in native ? 1 : 0;
  if (found) failures.push(`${JSON.stringify(question)}: ${found}`);
}
console.log(`${asked.length} questions, ${refused} of them refused`);

// The other questions, and the corresponding words of the command line.
const run = { model: "bert-large", optimizer: "lamb", global_batch: "4096", micro_batch: "16", steps: "5993" };
for (const [question, others] of [
  [{ command: "compare", names: ["aws-p4d", "commodity-10gbe"], texts: Object.assign({ gpus: "32" }, run) },
    ["aws-p4d", "commodity-10gbe"]],
  [{ command: "compare", optimizers: ["lamb", "onebit_lamb"], texts: { model: "bert-large", gpus: "32", global_batch: "4096",
    micro_batch: "16", steps: "5993", cluster: "commodity-10gbe", freeze_step: "20%" } }, ["--optimizers", "lamb,onebit_lamb"]],
  [{ command: "solve", key: "gpus", wanted: "run_time=3h", texts: Object.assign({ cluster: "commodity-10gbe" }, run) },
    ["gpus", "--for", "run_time=3h"]]]) {
  const found = difference(engine.ask(question), nativeAnswer(program, question.command, question.texts, others), 1e-12);
  if (found) failures.push(`${question.command}: ${found}`);
}

// A sensitivity, and the choices of a curve.
const moved = { command: "sensitivity", texts: Object.assign({ cluster: "commodity-10gbe", gpus: "32" }, run) };
const apart = difference(engine.ask(moved), nativeAnswer(program, "sensitivity", moved.texts), 1e-9);
if (apart) failures.push(`sensitivity: ${apart}`);
const choices = engine.ask({ command: "curve", texts: Object.assign({ gpus: "32" }, run), key: "cluster",
  values: ["aws-p4d", "absent"] }).answer;
const chosen = engine.ask({ command: "simulate", texts: Object.assign({ gpus: "32", cluster: "aws-p4d" }, run) }).answer;
if (difference(choices[0].run, chosen.run, 0) || !choices[0].fits || !choices[1].refused) failures.push("choices of a curve");

// Logs, and the descriptions that the program writes for them.
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "lambcast-module-"));
const fixture = function (name) {
  return fs.readFileSync(path.join(__dirname, "../../validate", name), "utf8");
};
const steps = Array.from({ length: 30 }, function (_, i) {
  return `[Rank 0] step=${i + 1}, RunningAvgSamplesPerSec=2500, CurrSamplesPerSec=${2500 + i % 3}, MemAllocated=1GB\n`;
}).join("");
for (const [name, text, texts, measured] of [
  ["table.csv", fixture("replay/collectives/allreduce_h100_2n16r_ibndr3200_nccltests309d.csv"), { cluster: "hgx-h100-ndr" }, []],
  ["nccl.txt", fixture("importers/fixtures/nccl_all_reduce.txt"), { cluster: "dgx-a100-80g" }, []],
  ["steps.log", steps, { cluster: "aws-p4d", model: "bert-large", gpus: "8", micro_batch: "32", global_batch: "2048", optimizer: "adam" },
    ["--log"]]]) {
  const file = path.join(folder, name), out = path.join(folder, "calibrated.toml");
  fs.writeFileSync(file, text);
  const ours = engine.ask({ command: "calibrate", text: text, file: file, texts: texts });
  const flags = Object.entries(texts).flatMap(function (flag) { return [`--${flag[0].replace("_", "-")}`, flag[1]]; });
  const ran = spawnSync(program, ["calibrate", "--force", "-o", out].concat(flags, measured, file), { encoding: "utf8" });
  if (!ours.answer || ran.status !== 0) failures.push(`${name}: ${JSON.stringify(ours).slice(0, 300)} ${ran.stderr}`);
  else if (!sameNumbers(ours.answer.cluster_text, fs.readFileSync(out, "utf8"))) failures.push(`${name}: another description`);
}
fs.rmSync(folder, { recursive: true });
const unknown = engine.ask({ command: "calibrate", text: "hello\n", file: "a.log", texts: { cluster: "aws-p4d" } });
if (!(unknown.error || "").startsWith("a.log")) failures.push(`a text that is no log: ${JSON.stringify(unknown)}`);

// The keys of a DeepSpeed file.
engine.file("ds_config.json", JSON.stringify({ train_batch_size: 64, steps_per_print: 9, optimizer: { type: "Adam", params: {} } }));
const ledger = engine.ask({ command: "inputs", texts: { model: "bert-large", cluster: "aws-p4d", gpus: "8", config: "ds_config.json" } });
const treatments = new Map(ledger.answer[0].keys.map(function (key) { return [key.key, key.treatment]; }));
if (treatments.get("train_batch_size") !== "applied" || treatments.get("steps_per_print") !== "costless")
  failures.push(`keys of a DeepSpeed file: ${JSON.stringify(ledger)}`);

// The user's own descriptions: texts that the page passes as files.
const cluster = presets.clusters.find(function (c) { return c.name === "commodity-25gbe"; });
const texts = { model: "bert-large", gpus: "16", optimizer: "lamb", micro_batch: "8", grad_accum: "2", steps: "100" };
engine.file("mine.toml", cluster.text);
const own = engine.ask({ command: "simulate", texts: Object.assign({ cluster: "mine.toml" }, texts) });
const preset = engine.ask({ command: "simulate", texts: Object.assign({ cluster: cluster.name }, texts) });
if (difference(own.answer.run, preset.answer.run, 0)) failures.push("a file's cluster differs from the preset with its text");
engine.file("mine.toml", `${cluster.text}\n[nic]\nbandwith = 3\n`);
const wrong = engine.ask({ command: "simulate", texts: Object.assign({ cluster: "mine.toml" }, texts) });
if (!/^mine.toml:\d+: /.test(wrong.error || "")) failures.push(`a wrong file: ${JSON.stringify(wrong)}`);
const absent = engine.ask({ command: "simulate", texts: Object.assign({ cluster: "absent.toml" }, texts) });
if (!absent.error.startsWith("absent.toml: ")) failures.push(`a file that is not there: ${absent.error}`);
for (const question of [{}, { command: "simulate" }, { command: "plan" }, { command: 3 }, { command: "curve", texts: 4 },
  { command: "calibrate" }])
  if (!engine.ask(question).error) failures.push(`answered: ${JSON.stringify(question)}`);
for (let i = 0; i < 2000; ++i) engine.ask({ command: "simulate", texts: asked[i % asked.length].texts });
console.log(`memory after 2000 questions: ${(engine.bytes / 1e6).toFixed(1)} MB`);
if (engine.bytes > 64e6) failures.push(`${engine.bytes} bytes of memory`);

console.log(`module ${bytes.length} bytes, gzip ${gzipped.length}, ` +
  `${path.basename(page)} ${fs.statSync(page).size}`);
if (fs.statSync(page).size > 1.5e6) failures.push("the page is larger than 1.5 MB");
for (const failure of failures) console.log(`FAILED: ${failure}`);
console.log(`${failures.length} failures`);
process.exitCode = failures.length > 0 ? 1 : 0;
