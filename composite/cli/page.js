// Lines with one data-line come from one line of the source: pointing at one lights all of them, a
// click keeps them lit and brings them into view in every stage. #L12 is line 12 of the source.
"use strict";
const linked = [...document.querySelectorAll("code[data-line]")];
let pinned = "";

function light(line) {
  for (const code of linked) {
    const same = code.dataset.line === line;
    code.classList.toggle("on", same);
    code.classList.toggle("pinned", same && line === pinned);
  }
}

function show(line, but) {
  const seen = new Set(but ? [but.parentElement] : []);
  for (const code of linked) {
    const pre = code.parentElement;
    if (code.dataset.line !== line || seen.has(pre)) continue;
    seen.add(pre);
    pre.scrollTop = code.offsetTop - pre.offsetTop - pre.clientHeight / 3;
  }
}

function pin(line, but) {
  pinned = line;
  const first = linked.find((code) => code.id && code.dataset.line === line);
  history.replaceState(null, "", first ? "#" + first.id : location.pathname + location.search);
  light(line);
  if (line) show(line, but);
}

function fragment() {
  const code = location.hash && document.getElementById(location.hash.slice(1));
  if (code && code.dataset.line) pin(code.dataset.line);
}

const lineOf = (event) => event.target.closest("code[data-line]");
document.addEventListener("mouseover", (event) => {
  const code = lineOf(event);
  light(code ? code.dataset.line : pinned);
});
document.addEventListener("click", (event) => {
  const code = lineOf(event);
  if (code) pin(code.dataset.line === pinned ? "" : code.dataset.line, code);
});
document.addEventListener("keydown", (event) => {
  const code = lineOf(event);
  if (event.key === "Escape") pin("");
  if (event.key === "Enter" && code) pin(code.dataset.line, code);
});
addEventListener("hashchange", fragment);
fragment();
