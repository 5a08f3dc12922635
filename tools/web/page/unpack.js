// Blocks of bytes in the page: seven bits in each byte of UTF-8, the highest first (join.sh). The
// three values that HTML would change (NUL, carriage return and <) stand in a character of two bytes
// with the seven bits that follow: 128 (1 + place of the value) + these bits. At the end, without
// bits that follow, it is 128 (4 + place). Runs in the page, in its Worker and in node.
/* global globalThis */
"use strict";

(function (root) {
  root.lambcastBytes = function (text) {
    const bytes = new Uint8Array(text.length * 7 / 4), changed = [0, 13, 60];
    let next = 0, held = 0, bits = 0;
    const take = function (value) {
      held = held << 7 | value;
      bits += 7;
      if (bits < 8) return;
      bits -= 8;
      bytes[next++] = held >> bits;
    };
    for (let i = 0; i < text.length; ++i) {
      const code = text.charCodeAt(i);
      if (code > 127) take(changed[((code >> 7) - 1) % 3]);
      if (code < 512) take(code & 127);
    }
    return bytes.subarray(0, next);
  };
  // Returns the stream of the bytes that were packed by gzip.
  root.lambcastUnpacked = function (text) {
    return new Blob([root.lambcastBytes(text)]).stream().pipeThrough(new root.DecompressionStream("gzip"));
  };
})(typeof self === "undefined" ? globalThis : self);
