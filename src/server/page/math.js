// SPDX-License-Identifier: Apache-2.0
// Formulas: which parts of a text are one ($a$, \(a\), $$a$$, \[a\]), and how KaTeX shows them: as
// MathML, which browsers draw with fonts of their own and screen readers read. KaTeX is asked for
// with the first formula; until then, and where it does not understand, the source stands there.
import {el} from "./dom.js";

const MAX_LENGTH = 5000;
// `tight`: no blank inside its ends and no digit behind it, so that $5 and $10 are money.
const INLINE = [{begin: "$$", end: "$$"}, {begin: "$", end: "$", tight: true},
                {begin: "\\(", end: "\\)"}, {begin: "\\[", end: "\\]"}];
const BLOCK = [{begin: "$$", end: "$$"}, {begin: "\\[", end: "\\]"}];

function closing(text, from, end, limit) {
  const last = Math.min(limit, from + MAX_LENGTH);
  for (let at = text.indexOf(end, from); at >= 0 && at < last; at = text.indexOf(end, at + 1)) {
    if (end[0] === "\\" || text[at - 1] !== "\\") return at;
  }
  return -1;
}

function inlineRule(state, silent) {
  const {src, pos, posMax} = state;
  const mark = INLINE.find(({begin}) => src.startsWith(begin, pos));
  if (!mark) return false;
  const from = pos + mark.begin.length, to = closing(src, from, mark.end, posMax);
  if (to <= from) return false;
  const behind = to + mark.end.length;
  if (mark.tight && (/\s/.test(src[from]) || /\s/.test(src[to - 1]) || /\d/.test(src[behind]))) {
    return false;
  }
  if (!silent) state.push("math_inline", "", 0).content = src.slice(from, to);
  state.pos = behind;
  return true;
}

// From a line that begins with a mark to one that ends with its counterpart.
function blockRule(state, first, end, silent) {
  const begin = state.bMarks[first] + state.tShift[first];
  const mark = BLOCK.find(({begin: text}) => state.src.startsWith(text, begin));
  if (!mark) return false;
  const from = begin + mark.begin.length;
  const to = closing(state.src, from, mark.end, state.eMarks[end - 1] + 1);
  if (to < 0) return false;
  let line = first;
  while (line < end && state.eMarks[line] < to) line++;
  if (state.src.slice(to + mark.end.length, state.eMarks[line]).trim()) return false;
  if (silent) return true;
  const token = state.push("math_block", "", 0);
  token.content = state.src.slice(from, to);
  token.map = [first, line + 1];
  state.line = line + 1;
  return true;
}

/** Teaches formulas to a reader of markdown-it. */
export function useMath(reader) {
  reader.inline.ruler.before("escape", "math", inlineRule);
  reader.block.ruler.before("fence", "math", blockRule,
    {alt: ["paragraph", "reference", "blockquote", "list"]});
}

let katex = null, loading = null;

function draw(host, tex, displayMode) {
  const made = el("span");
  try {
    katex.render(tex, made, {displayMode, output: "mathml", trust: false, strict: "ignore",
                             maxSize: 20, maxExpand: 500});
    host.replaceChildren(...made.childNodes);
    host.classList.remove("source");
  } catch {
    // no formula, or one that is still growing: its source stays
  }
}

/** An element that shows it, perhaps a little later. */
export function formula(tex, display) {
  const host = el("span", {class: `formula source${display ? " display" : ""}`}, tex.trim());
  if (display) host.setAttribute("tabindex", "0"); // it may be wider than the page
  if (katex) draw(host, tex, display);
  else {
    loading ??= import("./katex.js").then((module) => (katex = module.default));
    loading.then(() => draw(host, tex, display), () => (loading = null));
  }
  return host;
}
