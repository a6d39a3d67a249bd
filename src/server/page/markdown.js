// SPDX-License-Identifier: Apache-2.0
// What models write, as elements: markdown-it reads the Markdown, and each of its tokens is built
// here, if it is in the table. HTML in the text stays text; links lead to the web or to mail, and
// say nothing of where they were followed; pictures become links, as this page asks no other host.
// An answer that grows is read again at each step, but only blocks that changed are built.
import {codeBlock} from "./code.js";
import {el} from "./dom.js";
import {formula, useMath} from "./math.js";
import markdownIt from "./markdown-it.js";

const MAX_NESTING = 40, MAX_LENGTH = 200_000;
const reader = markdownIt({html: false, linkify: true, maxNesting: MAX_NESTING});
reader.use(useMath);

const TAGS = new Set(["p", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th",
                      "td", "strong", "em", "s", "hr", "br"]);
const HEADING = /^h([1-6])$/, ALIGN = /^text-align:(left|center|right)$/;

/** The address if it is one of the web or of mail, else null. */
export function safeAddress(text) {
  if (!/^(https?:\/\/|mailto:)/i.test(text)) return null; // relative ones would lead to the server
  try {
    const {protocol, href} = new URL(text);
    return ["http:", "https:", "mailto:"].includes(protocol) ? href : null;
  } catch {
    return null;
  }
}

function link(address, title, ...children) {
  const href = safeAddress(address);
  if (!href) return el("span", {}, ...children);
  return el("a", {href, title, target: "_blank", rel: "noopener noreferrer nofollow"}, ...children);
}

function open(token) {
  const heading = HEADING.exec(token.tag);
  if (heading) return el(`h${Math.min(Number(heading[1]) + 2, 6)}`);
  if (token.type === "link_open") return link(token.attrGet("href"), token.attrGet("title"));
  const align = ALIGN.exec(token.attrGet("style") ?? "");
  return TAGS.has(token.tag)
    ? el(token.tag, {class: align && align[1], start: token.attrGet("start")}) : el("span");
}

const LEAVES = {
  text: ({content}) => content,
  softbreak: () => "\n",
  code_inline: ({content}) => el("code", {}, content),
  code_block: ({content}) => codeBlock(content, ""),
  fence: ({content, info}) => codeBlock(content, info.trim().split(/\s/, 1)[0]),
  image: (token) => link(token.attrGet("src"), token.attrGet("title"),
    `Picture: ${token.content || token.attrGet("src")}`),
  math_inline: ({content}) => formula(content, false),
  math_block: ({content}) => formula(content, true),
};

// A table may be wider than the page: it scrolls, and a keyboard can do that, too.
function wrapped(node) {
  return node.tagName !== "TABLE" ? node
    : el("div", {class: "wide", tabindex: 0, role: "region", "aria-label": "Table"}, node);
}

// [ ] and [x] at the beginning of an item.
function markTask(tokens, i) {
  const text = tokens[i].children?.[0];
  const task = tokens[i - 2]?.type === "list_item_open" && /^\[([ xX])\] /.exec(text?.content);
  if (task) text.content = (task[1] === " " ? "☐ " : "☑ ") + text.content.slice(4);
}

/** The nodes of a flat list of tokens. */
function build(tokens) {
  const nodes = [], stack = [];
  const add = (...made) => (stack.length ? stack.at(-1).append(...made) : nodes.push(...made));
  tokens.forEach((token, i) => {
    if (token.type === "inline") {
      markTask(tokens, i);
      add(...build(token.children));
    } else if (token.hidden) {
      // The paragraph of an item of a tight list.
    } else if (token.nesting === 1) {
      stack.push(open(token));
    } else if (token.nesting === -1) {
      add(wrapped(stack.pop()));
    } else {
      add(LEAVES[token.type]?.(token) ?? open(token));
    }
  });
  return nodes;
}

// [{source, tokens}] of the outermost blocks. A definition of a link changes what other blocks
// mean, so that it is part of each one's source.
function blocks(text) {
  const environment = {}, found = [], lines = text.split("\n");
  let first = 0;
  const tokens = reader.parse(text, environment);
  const definitions = environment.references ? JSON.stringify(environment.references) : "";
  tokens.forEach((token, i) => {
    if (token.level !== 0 || token.nesting === 1) return;
    const of = tokens.slice(first, i + 1), [begin, end] = of[0].map ?? [0, lines.length];
    found.push({source: of[0].type + definitions + lines.slice(begin, end).join("\n"), tokens: of});
    first = i + 1;
  });
  return found;
}

function read(text) {
  try {
    if (text.length <= MAX_LENGTH) return blocks(text);
  } catch {
    // what even the reader of Markdown does not understand
  }
  return [{source: text, tokens: [{type: "text", content: text, nesting: 0}]}];
}

function elementOf(block) {
  const [node] = build(block.tokens);
  return node instanceof Element ? node : el("p", {}, node ?? "");
}

/** Makes `host` show `text`; what it shows already and has not changed stays as it is. */
export function render(host, text) {
  const wanted = read(text), shown = host.stintBlocks ?? [];
  wanted.forEach((block, i) => {
    if (shown[i] === block.source) return;
    if (host.children[i]) host.children[i].replaceWith(elementOf(block));
    else host.append(elementOf(block));
  });
  while (host.childElementCount > wanted.length) host.lastElementChild.remove();
  host.stintBlocks = wanted.map(({source}) => source);
}
