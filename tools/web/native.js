// The program's own answers, for tests that compare the module with them.
/* eslint-env node */
"use strict";

const { spawnSync } = require("child_process");

// Returns {answer} or {error}, like the module, for a command with its flags as texts by key, after
// `others`.
exports.nativeAnswer = function (program, command, texts, others) {
  const words = [command].concat(others || []);
  for (const [key, value] of Object.entries(texts))
    if (key.includes(".")) words.push("--set", `${key}=${value}`);
    else words.push(`--${key.replace(/_/g, "-")}`, value);
  const ran = spawnSync(program, words.concat("--format", "json"), { encoding: "utf8", maxBuffer: 1 << 26 });
  if (ran.status === 0) return { answer: JSON.parse(ran.stdout) };
  return { error: ran.stderr.trim().replace(/^lambcast: /, ""), code: ran.status };
};

// Returns the first difference of two answers: texts must be equal, numbers within `tolerance` of
// the larger.
exports.difference = function difference(one, other, tolerance, at = "") {
  if (typeof one === "number" && typeof other === "number") {
    const apart = Math.abs(one - other), most = tolerance * Math.max(Math.abs(one), Math.abs(other));
    return apart <= most ? null : `${at}: ${one} and ${other}`;
  }
  if (one === null || other === null || typeof one !== "object" || typeof other !== "object")
    return one === other ? null : `${at}: ${JSON.stringify(one)} and ${JSON.stringify(other)}`;
  const keys = Object.keys(one);
  if (keys.join() !== Object.keys(other).join()) return `${at}: keys ${keys} and ${Object.keys(other)}`;
  for (const key of keys) {
    const found = difference(one[key], other[key], tolerance, `${at}/${key}`);
    if (found) return found;
  }
  return null;
};
