// SPDX-License-Identifier: Apache-2.0
// The little Markdown that models write, as elements: paragraphs, headings, lists, fenced code,
// inline code, bold and italic. What is not understood stays text; links and pictures do, too.
// An answer that grows is cut into blocks again at each step, but only changed blocks are built.
import {copy, el, iconButton, announce} from "./dom.js";

const FENCE = /^\s*(`{3,}|~{3,})\s*([\w+#.-]*)/, HEADING = /^ {0,3}(#{1,6})\s+(.+?)\s*#*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const MARKS = [["**", "strong"], ["__", "strong"], ["*", "em"], ["_", "em"]];
const MAX_DEPTH = 4;

const isWord = (character) => character !== undefined && /[\p{L}\p{N}]/u.test(character);

// Where the mark that opens at `from` closes, or -1. `absent` remembers what was looked for in
// vain, so that a text of nothing but marks costs no more than its length.
function closing(text, mark, from, absent) {
  if (absent.has(mark) || /\s/.test(text[from] ?? " ")) return -1;
  if (mark[0] === "_" && isWord(text[from - mark.length - 1])) return -1; // snake_case
  for (let at = text.indexOf(mark, from + 1); at >= 0; at = text.indexOf(mark, at + 1)) {
    const inside = mark.length === 1 && (text[at + 1] === mark || text[at - 1] === mark);
    const open = /\s/.test(text[at - 1]) || (mark[0] === "_" && isWord(text[at + mark.length]));
    if (!inside && !open) return at;
  }
  absent.add(mark);
  return -1;
}

function markAt(text, i, absent) {
  if (text[i] === "`") {
    let n = 1;
    while (text[i + n] === "`") n++;
    const mark = "`".repeat(n);
    const end = absent.has(mark) ? -1 : text.indexOf(mark, i + n);
    if (end < 0) absent.add(mark);
    return end < 0 ? {skip: n} : {tag: "code", begin: i + n, end, next: end + n};
  }
  for (const [mark, tag] of MARKS) {
    if (!text.startsWith(mark, i)) continue;
    const begin = i + mark.length, end = closing(text, mark, begin, absent);
    if (end >= 0) return {tag, begin, end, next: end + mark.length};
  }
  return {skip: 1};
}

export function inline(text, depth = 0) {
  const nodes = [], absent = new Set();
  let plain = 0;
  for (let i = 0; i < text.length;) {
    if (!"`*_".includes(text[i]) || depth >= MAX_DEPTH) {
      i++;
      continue;
    }
    const found = markAt(text, i, absent);
    if (!found.tag) {
      i += found.skip;
      continue;
    }
    if (i > plain) nodes.push(text.slice(plain, i));
    const inner = text.slice(found.begin, found.end);
    nodes.push(el(found.tag, {}, ...(found.tag === "code" ? [inner] : inline(inner, depth + 1))));
    i = plain = found.next;
  }
  if (plain < text.length) nodes.push(text.slice(plain));
  return nodes;
}

// [{kind, source}]: the lines of each block.
export function blocks(text) {
  const found = [];
  let open = null, fence = "";
  const close = () => {
    if (open) found.push(open);
    open = null;
  };
  const start = (kind, line) => {
    close();
    open = {kind, source: line};
  };
  for (const line of text.split("\n")) {
    const fenced = FENCE.exec(line);
    if (fence) {
      open.source += `\n${line}`;
      if (fenced && fenced[1].startsWith(fence) && line.trim() === fenced[1]) {
        fence = "";
        close();
      }
    } else if (fenced) {
      start("code", line);
      fence = fenced[1];
    } else if (line.trim() === "") {
      if (open?.kind !== "list") close();
      else open.source += "\n";
    } else if (HEADING.test(line)) {
      start("heading", line);
      close();
    } else if (ITEM.test(line) && open?.kind !== "list") {
      start("list", line);
    } else if (open?.kind === "list" && !ITEM.test(line) && /\n$/.test(open.source) &&
               !/^\s/.test(line)) {
      start("paragraph", line); // a blank line, then text at the margin: the list has ended
    } else if (open) {
      open.source += `\n${line}`;
    } else {
      start("paragraph", line);
    }
  }
  close();
  return found;
}

function codeBlock(source) {
  const lines = source.split("\n"), language = FENCE.exec(lines[0])[2];
  const fence = FENCE.exec(lines[0])[1];
  const closed = lines.length > 1 && lines.at(-1).trim().startsWith(fence);
  const code = lines.slice(1, closed ? -1 : undefined).join("\n");
  const button = iconButton("copy", "Copy the code", async () => {
    await copy(code).then(() => announce("Copied."), () => announce("It could not be copied."));
  });
  return el("figure", {class: "code"},
    el("figcaption", {}, el("span", {}, language || "code"), button),
    el("pre", {tabindex: "0", role: "region", "aria-label": `Code, ${language || "plain"}`},
      el("code", {}, code)));
}

function list(source) {
  let stack = []; // of {node, indent}
  let root = null;
  for (const line of source.split("\n")) {
    const item = ITEM.exec(line);
    if (!item) {
      const last = stack.at(-1)?.node.lastChild;
      if (line.trim()) last.append(" ", ...inline(line.trim()));
      continue;
    }
    const indent = item[1].length, ordered = /\d/.test(item[2]);
    while (stack.length > 1 && indent < stack.at(-1).indent) stack.pop();
    if (!stack.length || (indent > stack.at(-1).indent + 1 && stack.length < MAX_DEPTH)) {
      const node = ordered ? el("ol", {start: parseInt(item[2], 10)}) : el("ul");
      if (stack.length) stack.at(-1).node.lastChild.append(node);
      else root = node;
      stack = [...stack, {node, indent}];
    }
    stack.at(-1).node.append(el("li", {}, ...inline(item[3])));
  }
  return root;
}

function build({kind, source}) {
  if (kind === "code") return codeBlock(source);
  if (kind === "list") return list(source);
  if (kind === "heading") {
    const [, marks, text] = HEADING.exec(source);
    return el(`h${Math.min(marks.length + 2, 6)}`, {}, ...inline(text));
  }
  return el("p", {}, ...inline(source));
}

/** Makes `host` show `text`; what it shows already and has not changed stays as it is. */
export function render(host, text) {
  const wanted = blocks(text), shown = host.stintBlocks ?? [];
  wanted.forEach((block, i) => {
    if (shown[i] && shown[i].kind === block.kind && shown[i].source === block.source) return;
    if (host.children[i]) host.children[i].replaceWith(build(block));
    else host.append(build(block));
  });
  while (host.childElementCount > wanted.length) host.lastElementChild.remove();
  host.stintBlocks = wanted;
}
