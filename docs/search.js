/* The search: sections that have all the words, or most of them; those whose titles have them first. Text stays text. */
"use strict";

(() => {
  const list = document.getElementById("mkdocs-search-results");
  const field = document.getElementById("mkdocs-search-query");
  const AROUND = 90; // letters of a section that are shown before and after the first word

  /* A word is found where one of the text begins with it; "--nodes" and the like anywhere. */
  function pattern(word) {
    const escaped = word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    return new RegExp((/^[\p{L}\p{N}]/u.test(word) ? "(?<![\\p{L}\\p{N}])" : "") + escaped, "giu");
  }

  /* How many of the words it has, and how much they weigh. */
  function worth([, title, page, text], patterns) {
    let has = 0;
    let weight = 0;
    for (const wanted of patterns) {
      const often = (text.match(wanted) || []).length;
      const named = title.match(wanted) ? 20 : page.match(wanted) ? 5 : 0;
      has += often || named ? 1 : 0;
      weight += named + Math.min(often, 10);
    }
    return [has, weight];
  }

  /* The part of a text around the first word, with all words in bold. */
  function passage(text, patterns) {
    const found = patterns.map((wanted) => text.search(wanted)).filter((at) => at >= 0);
    const first = found.length ? Math.min(...found) : 0;
    const from = Math.max(0, first - AROUND);
    const part = text.slice(from, first + AROUND);
    const marks = patterns.flatMap((wanted) => [...part.matchAll(wanted)].map((hit) => [hit.index, hit.index + hit[0].length]));
    const shown = document.createElement("p");
    let at = 0;
    for (const [begin, end] of marks.sort((a, b) => a[0] - b[0])) {
      if (begin < at) continue;
      const bold = document.createElement("strong");
      bold.textContent = part.slice(begin, end);
      shown.append(part.slice(at, begin), bold);
      at = end;
    }
    shown.append(part.slice(at));
    shown.prepend(from ? "… " : "");
    shown.append(first + AROUND < text.length ? " …" : "");
    return shown;
  }

  function show(query) {
    const patterns = query.split(/\s+/).filter((word) => word).map(pattern);
    const found = sections.map((row) => [...worth(row, patterns), row]);
    const most = found.reduce((best, [has]) => Math.max(best, has), 0);
    const rows = most ? found.filter(([has]) => has === most) : [];
    rows.sort((a, b) => b[1] - a[1]);
    list.replaceChildren();
    const told = document.createElement("p");
    const less = most < patterns.length ? ` with ${most} of ${patterns.length} words` : "";
    told.textContent = rows.length ? `${rows.length} section${rows.length === 1 ? "" : "s"}${less}` : patterns.length ? "Nothing was found." : "";
    list.append(told);
    for (const [, , [location, title, page, text]] of rows.slice(0, 60)) {
      const result = document.createElement("article");
      const heading = document.createElement("h3");
      const link = document.createElement("a");
      link.href = `${base_url}/${location}`;
      link.textContent = title === page ? title : `${page}: ${title}`;
      heading.append(link);
      result.append(heading, passage(text, patterns));
      list.append(result);
    }
  }

  if (!list || !field) return;
  const source = document.createElement("script");
  source.src = `${base_url}/search/sections.js`;
  source.onload = () => {
    field.value = new URLSearchParams(window.location.search).get("q") || "";
    show(field.value);
    field.addEventListener("input", () => show(field.value));
  };
  document.head.append(source);
})();
