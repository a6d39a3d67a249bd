// SPDX-License-Identifier: Apache-2.0
// The answer's tokens, coloured by the precision of the weights that made them, and how long each
// took. The colours grow darker with the bits; the number stands in the legend and the readout.
import {makeCursor, step} from "./cursor.js";
import {count, el, number, seconds, svg} from "./dom.js";

const BAR = 6, HEIGHT = 72;

export function precision(bits) {
  if (bits === 0) return "float";
  return bits === 8 ? "INT8" : `${bits} bits`;
}

const shade = (bits) => `bits-${bits === 0 ? "float" : bits}`;

// What a token looks like where it is only blanks.
function visible(text) {
  return text.replace(/\n/g, "↵\n") || "∅";
}

function say(tokens, i) {
  const {text, bits, seconds: taken, batch} = tokens[i];
  return `Token ${i + 1}, “${text.replace(/\n/g, "↵")}”: ${precision(bits)}, ${seconds(taken)}` +
    (batch > 1 ? `, ${batch} sequences at once` : "") + (i === 0 ? ", with the prompt" : "");
}

function legend(tokens) {
  const used = new Map();
  for (const {bits} of tokens) used.set(bits, (used.get(bits) ?? 0) + 1);
  const rows = [...used].sort(([a], [b]) => (a || 99) - (b || 99));
  return el("ul", {class: "legend"}, ...rows.map(([bits, n]) => el("li", {},
    el("span", {class: `chip ${shade(bits)}`, "aria-hidden": "true"}, bits || "f"),
    `${precision(bits)}, ${count(n, "token")}`)));
}

// The first token waited for the prompt, and one may have waited for the machine: the scale ends
// a little over what nearly all took, and what is longer is cut off.
function scaleOf(tokens) {
  const times = tokens.slice(tokens.length > 1 ? 1 : 0).map((token) => token.seconds)
    .sort((a, b) => a - b);
  return Math.max(times[Math.floor((times.length - 1) * 0.98)] * 1.15, 1e-9);
}

function bars(tokens, scale) {
  const width = tokens.length * BAR;
  const chart = svg("svg", {class: "bars", width, height: HEIGHT,
                            viewBox: `0 0 ${width} ${HEIGHT}`});
  tokens.forEach((token, i) => {
    const height = Math.max(Math.min(token.seconds / scale, 1) * (HEIGHT - 8), 1.5);
    chart.append(svg("g", {"data-mark": i},
      svg("rect", {class: "touch", x: i * BAR, y: 0, width: BAR, height: HEIGHT}),
      svg("rect", {class: `bar ${shade(token.bits)}`, x: i * BAR + 0.75, y: HEIGHT - height,
                   width: BAR - 1.5, height, rx: 1}),
      token.seconds > scale ? svg("path", {class: "cut",
        d: `M${i * BAR} 11l${BAR} -4`}) : null));
  });
  return chart;
}

/** The card's content for the tokens of /stint/last, at least one. */
export function tokens(list) {
  const scale = scaleOf(list);
  const text = el("p", {class: "tokens"}, ...list.map((token, i) =>
    el("span", {class: `token ${shade(token.bits)}`, "data-mark": i}, visible(token.text))));
  const chart = bars(list, scale), strip = el("div", {class: "strip"}, chart);
  const readout = el("p", {class: "readout"}, "Point at a token, or use the arrow keys below.");
  let shown = [];
  const show = (i) => {
    for (const node of shown) node.classList.remove("at");
    shown = [text.children[i], chart.children[i]];
    for (const node of shown) node.classList.add("at");
    readout.textContent = say(list, i);
    const x = i * BAR;
    if (x < strip.scrollLeft || x > strip.scrollLeft + strip.clientWidth - BAR) {
      strip.scrollLeft = x - strip.clientWidth / 2;
    }
  };
  const go = makeCursor(chart, {label: "Time of each token", count: list.length,
                                say: (i) => say(list, i), show, move: step});
  for (const kind of ["pointerover", "pointerdown"]) {
    text.addEventListener(kind, ({target}) => {
      if (target.dataset.mark) go(Number(target.dataset.mark));
    });
  }
  return [legend(list), text, readout, strip,
    el("p", {class: "quiet"}, `Time from token to token; the bars' full height is ` +
      `${seconds(scale)}, longer ones are cut off. Mean ${seconds(mean(list))}.`)];
}

function mean(list) {
  const rest = list.slice(1);
  return rest.length ? rest.reduce((sum, token) => sum + token.seconds, 0) / rest.length
    : list[0].seconds;
}

/** In words for the numbers: 8 is INT8, 0 the float weights. */
export function averageBits(bits) {
  return bits === 0 ? "float" : number(bits);
}
