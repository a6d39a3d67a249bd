// SPDX-License-Identifier: Apache-2.0
// Building elements, and saying numbers. Nothing here or elsewhere ever parses a string as HTML.
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

/** An element; functions among the attributes are listeners, false and null are left out. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function icon(name) {
  return svg("svg", {"aria-hidden": "true"}, svg("use", {href: `#icon-${name}`}));
}

export function iconButton(name, label, click) {
  return el("button", {type: "button", class: "icon small", "aria-label": label, title: label,
                       click}, icon(name));
}

export const find = (id) => document.getElementById(id);

/** Makes these the element's children; those that are already stay where they are. */
export function setChildren(host, nodes) {
  for (const child of [...host.children]) if (!nodes.includes(child)) child.remove();
  nodes.forEach((node, i) => {
    if (host.children[i] !== node) host.insertBefore(node, host.children[i] ?? null);
  });
}

/** Read aloud by a screen reader, one paragraph each. */
export function announce(text) {
  const spoken = find("spoken");
  while (spoken.childElementCount > 20) spoken.firstChild.remove();
  spoken.append(el("p", {}, text));
}

const whole = new Intl.NumberFormat("en", {maximumFractionDigits: 0});

/** Three digits that mean something: 1,234, 45.6, 0.123. */
export function number(value) {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 100 || Number.isInteger(value)) return whole.format(value);
  return Number(value.toPrecision(3)).toString();
}

export function seconds(value) {
  if (!Number.isFinite(value)) return "–";
  if (value >= 1) return `${number(value)} s`;
  if (value >= 1e-3 || value === 0) return `${number(value * 1e3)} ms`;
  return `${number(value * 1e6)} µs`;
}

export function bytes(value) {
  if (!Number.isFinite(value)) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${number(value)} ${units[unit]}`;
}

export function percent(value) {
  return Number.isFinite(value) ? `${Number((value * 100).toFixed(1))} %` : "–";
}

/** Plural by count: count(1, "token") is "1 token". */
export function count(n, noun) {
  return `${number(n)} ${noun}${n === 1 ? "" : "s"}`;
}

/** Also where the page did not come over https or from localhost, and has no clipboard. */
export async function copy(text) {
  if (navigator.clipboard && isSecureContext) return navigator.clipboard.writeText(text);
  const area = el("textarea", {class: "unseen", "aria-hidden": "true"});
  const focused = document.activeElement;
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  focused?.focus();
  if (!copied) throw new Error("the browser refused to copy");
  return undefined;
}

/** As high as its text, up to what the style sheet allows. */
export function grow(area) {
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight + 2}px`;
}
