// The search of the manual's site: finds sections that contain every word; sections with a word in
// their heading come first. `sections` is in search.js: [page, anchor, title, text in lower case].
/* global sections */
"use strict";

(function () {
  const box = document.getElementById("search"), list = document.getElementById("found");
  const most = 20;
  function found(words) {
    return sections.map(function (section) {
      const title = section[2].toLowerCase();
      if (!words.every(function (word) { return title.includes(word) || section[3].includes(word); })) return null;
      return { section: section, rank: words.filter(function (word) { return title.includes(word); }).length };
    }).filter(Boolean).sort(function (a, b) { return b.rank - a.rank; });
  }
  box.addEventListener("input", function () {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const hits = words.length ? found(words) : [];
    list.replaceChildren.apply(list, hits.slice(0, most).map(function (hit) {
      const item = document.createElement("li"), link = document.createElement("a");
      link.href = hit.section[0] + (hit.section[1] ? "#" + hit.section[1] : "");
      link.textContent = hit.section[2];
      item.append(link);
      return item;
    }));
    document.getElementById("hits").textContent = words.length ? hits.length + " sections" : "";
  });
})();
