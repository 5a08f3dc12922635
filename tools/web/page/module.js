// The engine in WebAssembly: the files that the page gives it, the few WASI calls that it makes,
// and ask(), which takes a question and returns its answer. Runs in a Worker and in node.
/* global BigInt, globalThis */
"use strict";

(function (root) {
  const ok = 0, badf = 8, noent = 44, nosys = 52;
  const folder = 3, directory = 3, regular = 4;

  // Imports of the module; `files` are texts by name, in its only folder. memory() returns its
  // memory.
  function imports(files, memory) {
    const opened = new Map();
    let next = folder + 1;
    const view = function () { return new DataView(memory().buffer); };
    const put32 = function (at, value) { view().setUint32(at, value, true); return ok; };
    const put64 = function (at, value) { view().setBigUint64(at, BigInt(value), true); return ok; };
    const text = function (at, size) {
      return new TextDecoder().decode(new Uint8Array(memory().buffer, at, size));
    };
    const named = function (name) { return name.replace(/^(\.?\/)+/, ""); };
    const isFolder = function (name) { return name === "" || name === "."; };
    const stat = function (at, type, size) {
      new Uint8Array(memory().buffer, at, 64).fill(0);
      view().setUint8(at + 16, type);
      return put64(at + 32, size);
    };
    // Calls `each` with the address and the size of every buffer of a list.
    const buffers = function (list, count, each) {
      for (let i = 0; i < count; ++i)
        each(view().getUint32(list + 8 * i, true), view().getUint32(list + 8 * i + 4, true));
    };
    const calls = {
      environ_sizes_get: function (count, size) { put32(count, 0); return put32(size, 0); },
      environ_get: function () { return ok; },
      clock_time_get: function (id, precision, at) { return put64(at, Math.round(Date.now() * 1e6)); },
      random_get: function (at, size) { new Uint8Array(memory().buffer, at, size).fill(7); return ok; },
      fd_prestat_get: function (fd, at) {
        if (fd !== folder) return badf;
        put32(at, 0);
        return put32(at + 4, 1);
      },
      fd_prestat_dir_name: function (fd, at) {
        view().setUint8(at, "/".charCodeAt(0));
        return ok;
      },
      fd_fdstat_get: function (fd, at) {
        new Uint8Array(memory().buffer, at, 24).fill(0);
        view().setUint8(at, fd === folder ? directory : regular);
        put64(at + 8, 0x1fffffff);
        return put64(at + 16, 0x1fffffff);
      },
      path_open: function (fd, follow, at, size, flags, rights, inherited, ways, result) {
        const name = named(text(at, size));
        if (!files.has(name) && !isFolder(name)) return noent;
        opened.set(next, { bytes: files.get(name) || new Uint8Array(0), at: 0, folder: isFolder(name) });
        return put32(result, next++);
      },
      path_filestat_get: function (fd, follow, at, size, result) {
        const name = named(text(at, size));
        if (isFolder(name)) return stat(result, directory, 0);
        return files.has(name) ? stat(result, regular, files.get(name).length) : noent;
      },
      fd_filestat_get: function (fd, result) {
        const file = opened.get(fd);
        if (!file) return fd === folder ? stat(result, directory, 0) : badf;
        return stat(result, file.folder ? directory : regular, file.bytes.length);
      },
      fd_read: function (fd, list, count, result) {
        const file = opened.get(fd);
        if (!file) return badf;
        let all = 0;
        buffers(list, count, function (at, size) {
          const some = file.bytes.subarray(file.at, file.at + size);
          new Uint8Array(memory().buffer, at, some.length).set(some);
          file.at += some.length;
          all += some.length;
        });
        return put32(result, all);
      },
      fd_seek: function (fd, offset, whence, result) {
        const file = opened.get(fd);
        if (!file) return badf;
        file.at = Number(offset) + [0, file.at, file.bytes.length][whence];
        return put64(result, file.at);
      },
      fd_write: function (fd, list, count, result) {
        let all = 0;
        buffers(list, count, function (at, size) { all += size; });
        return put32(result, all);
      },
      fd_close: function (fd) { return opened.delete(fd) ? ok : badf; },
      proc_exit: function (code) { throw new Error("the engine ended with " + code); },
    };
    return new Proxy(calls, {
      get: function (all, name) { return all[name] || function () { return nosys; }; },
      has: function () { return true; },
    });
  }

  class Engine {
    // `module` is a WebAssembly.Module.
    constructor(module) {
      this.module = module;
      this.files = new Map();
      this.start();
    }
    start() {
      const calls = imports(this.files, () => this.instance.exports.memory);
      const wanted = WebAssembly.Module.imports(this.module);
      const all = {};
      wanted.forEach(function (one) {
        all[one.module] = all[one.module] || {};
        all[one.module][one.name] = calls[one.name];
      });
      this.instance = new WebAssembly.Instance(this.module, all);
      this.instance.exports._initialize();
    }
    file(name, text) { this.files.set(name, new TextEncoder().encode(text)); }
    // Returns {"answer": ...} or {"error": ..., "code": ...}.
    ask(question) {
      const engine = this.instance.exports;
      try {
        const asked = new TextEncoder().encode(JSON.stringify(question));
        const at = engine.lambcast_alloc(asked.length);
        new Uint8Array(engine.memory.buffer, at, asked.length).set(asked);
        const answer = engine.lambcast_ask(at, asked.length);
        const bytes = new Uint8Array(engine.memory.buffer);
        const text = new TextDecoder().decode(bytes.subarray(answer, bytes.indexOf(0, answer)));
        engine.lambcast_free(at);
        engine.lambcast_free(answer);
        return JSON.parse(text);
      } catch (trap) {
        this.start();  // a trap leaves the instance unusable
        return { error: "the engine stopped at this question: " + trap.message, code: 1 };
      }
    }
    get bytes() { return this.instance.exports.memory.buffer.byteLength; }
  }
  root.LambcastEngine = Engine;
})(typeof self === "undefined" ? globalThis : self);
