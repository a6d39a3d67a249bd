// SPDX-License-Identifier: Apache-2.0
// A block of code, coloured by highlight.js, which is asked for with the first block that names a
// language. What it makes is HTML of nothing but spans; it is taken apart here and never parsed as
// HTML.
import {announce, copy, el, iconButton} from "./dom.js";

const MAX_LENGTH = 12_000; // longer ones stay plain: colouring takes long
const PARTS = /<span class="([\w -]*)">|(<\/span>)|([^<]+)/g;
const ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": "\"", "&#x27;": "'"};
let highlighter = null, loading = null;

/** The nodes that a text of spans says. */
export function spans(html) {
  const root = el("span"), stack = [root];
  for (const [, name, end, text] of html.matchAll(PARTS)) {
    if (end) {
      if (stack.length > 1) stack.pop();
    } else if (text) {
      stack.at(-1).append(text.replace(/&(amp|lt|gt|quot|#x27);/g, (one) => ENTITIES[one]));
    } else {
      const node = el("span", {class: name});
      stack.at(-1).append(node);
      stack.push(node);
    }
  }
  return [...root.childNodes];
}

async function load() {
  const {default: made} = await import("./highlight.js");
  made.configure({hideUpgradeWarningAcceptNoSupportOrSecurityUpdates: true}); // Debian keeps it
  highlighter = made;
}

function colour(node, code, language) {
  if (!highlighter.getLanguage(language)) return;
  const nodes = spans(highlighter.highlight(language, code, true).value);
  node.replaceChildren(...nodes);
  if (node.textContent !== code) node.textContent = code; // rather no colours than other letters
}

/** A figure with the code and a button that copies it. */
export function codeBlock(source, language) {
  const code = source.replace(/\n$/, ""), node = el("code", {}, code);
  const button = iconButton("copy", "Copy the code", async () => {
    await copy(code).then(() => announce("Copied."), () => announce("It could not be copied."));
  });
  if (language && code.length <= MAX_LENGTH) {
    if (highlighter) colour(node, code, language);
    else (loading ??= load()).then(() => colour(node, code, language), () => (loading = null));
  }
  return el("figure", {class: "code"},
    el("figcaption", {}, el("span", {}, language || "code"), button),
    el("pre", {tabindex: "0", role: "region", "aria-label": `Code, ${language || "plain"}`}, node));
}
