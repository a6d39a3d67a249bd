// SPDX-License-Identifier: Apache-2.0
// The view "Device": what the device did for the last request that ended, whoever sent it.
import * as api from "./api.js";
import {bytes, el, find, number, percent, seconds, svg} from "./dom.js";
import {saved} from "./saved.js";
import {timeline} from "./timeline.js";
import {averageBits, tokens} from "./tokens.js";
import {processorName} from "./words.js";

const PARTS = [["fixed_bytes", "Fixed", "norms, embeddings, attention"],
               ["hot_bytes", "Hot neurons", "always in memory"],
               ["cold_bytes", "Cold neurons", "cached as they are needed"],
               ["kv_bytes", "Keys and values", "of the sequences"]];

function card(title, about, ...content) {
  return el("section", {class: "card", "aria-label": title},
    el("header", {}, el("h3", {}, title), about ? el("p", {class: "quiet"}, about) : null),
    ...content);
}

function tile([label, value, note]) {
  return el("div", {class: "tile"}, el("dt", {}, label),
    el("dd", {}, el("strong", {}, value), note ? el("span", {}, note) : null));
}

function numbers(last) {
  const fresh = last.prompt_tokens - last.reused_tokens, steps = last.generated_tokens - 1;
  const rate = (n, time) => n > 0 && time > 0 ? number(n / time) : "–";
  return el("dl", {class: "tiles"}, ...[
    ["First token", seconds(last.first_token_seconds),
     `${seconds(last.queue_seconds)} in the queue`],
    ["Reading the prompt", `${rate(fresh, last.prefill_seconds)} tokens/s`,
     seconds(last.prefill_seconds)],
    ["Writing the answer", `${rate(steps, last.decode_seconds)} tokens/s`,
     seconds(last.decode_seconds)],
    ["Prompt", number(last.prompt_tokens), `${number(last.reused_tokens)} reused`],
    ["Answer", number(last.generated_tokens), "tokens"],
    ["Idle", percent(last.prefill?.bubble_rate),
     `${processorName("npu", last)}, while reading`],
    ["Bits", averageBits(last.average_bits),
     last.average_bits === 0 ? "as in the file" : "of a weight, on average"],
    ["Slot", number(last.slot), "where it ran"],
  ].map(tile));
}

function prefillCard(last) {
  const {prefill} = last;
  const about = `What each processor did while the prompt was read, ${seconds(prefill.seconds)}.`;
  if (prefill.events?.length) return card("Prompt", about, ...timeline(last));
  return card("Prompt", null, el("p", {class: "nothing"}, prefill.chunks === 0
    ? "Nothing was computed: the whole prompt was still in the slot."
    : `No schedule was used: the prompt went in ${number(prefill.chunks ?? 1)} at a time on one ` +
      "processor, so there are no lanes to show."));
}

function tokensCard({tokens: list}) {
  if (!list?.length) return card("Answer", null, el("p", {class: "nothing"}, "It has no token."));
  return card("Answer", "Each token by the precision of the weights that made it.",
    ...tokens(list));
}

function stack(memory) {
  const whole = Math.max(memory.budget_bytes, memory.peak_bytes,
    PARTS.reduce((sum, [name]) => sum + memory[name], 0), 1);
  const bar = svg("svg", {class: "stack", viewBox: "0 0 1000 28", preserveAspectRatio: "none",
                          "aria-hidden": "true"},
    svg("rect", {class: "room", width: 1000, height: 28}));
  let x = 0;
  for (const [name] of PARTS) {
    const width = memory[name] / whole * 1000;
    bar.append(svg("rect", {class: name, x, width: Math.max(width - 2, 0), height: 28}));
    x += width;
  }
  const peak = Math.min(memory.peak_bytes / whole * 1000, 998);
  bar.append(svg("rect", {class: "peak", x: peak - 1.5, width: 3, height: 28}));
  return bar;
}

function memoryCard({memory}) {
  if (!memory) {
    return card("Memory", null, el("p", {class: "nothing"}, "The server has no memory budget: " +
      "the whole model stays in memory. Start it with --memory to set one."));
  }
  const swatch = (name) => svg("svg", {class: "swatch", "aria-hidden": "true"},
    svg("rect", {class: name, width: 12, height: 12, rx: 3}));
  const used = PARTS.reduce((sum, [name]) => sum + memory[name], 0);
  return card("Memory", `${bytes(used)} in use, at most ${bytes(memory.peak_bytes)}, of a budget ` +
    `of ${bytes(memory.budget_bytes)}.`, stack(memory),
    el("ul", {class: "parts"}, ...PARTS.map(([name, label, note]) => el("li", {}, swatch(name),
      el("span", {}, label, " ", el("small", {}, note)), el("strong", {}, bytes(memory[name]))))));
}

function ioCard({io}) {
  if (!io) return null;
  const share = (label, value, note) => el("div", {class: "share"},
    el("p", {}, el("span", {}, label), el("strong", {}, percent(value))),
    el("meter", {min: 0, max: 1, value: value ?? 0, "aria-label": label}),
    el("p", {class: "quiet"}, note));
  return card("Cache and storage", `${bytes(io.bytes_read)} in ${number(io.reads)} reads.`,
    share("Cache hits", io.hit_rate, "Neurons that were needed and were in memory."),
    share("Hidden reads", io.hidden_fraction, "Time of reading that computation covered."));
}

function show(last) {
  const host = find("device"), note = find("device-note");
  if (!last) {
    note.textContent = "";
    host.replaceChildren(el("div", {class: "empty"}, el("h3", {}, "There is nothing yet"),
      el("p", {}, "As soon as a request has ended, this page shows how the device worked on it."),
      el("a", {class: "button", href: "#chat"}, "Ask something")));
    return;
  }
  note.textContent = `${number(last.prompt_tokens)} tokens in, ` +
    `${number(last.generated_tokens)} out.`;
  const wide = el("div", {class: "pair"}, memoryCard(last), ioCard(last) ?? "");
  host.replaceChildren(numbers(last),
    card("Spared", "What did not have to be done for this request.", saved(last)),
    prefillCard(last), tokensCard(last), wide);
}

let shown = "", latest = 0;

/** Asks again; what is the same as before is not drawn again, so that a reader keeps the place. */
export async function refresh() {
  const mine = ++latest;
  try {
    const last = await api.last(), text = JSON.stringify(last);
    if (mine !== latest) return; // a later one is under way
    if (text !== shown) show(last);
    shown = text;
  } catch (error) {
    if (mine !== latest) return;
    shown = "";
    find("device-note").textContent = "";
    find("device").replaceChildren(el("div", {class: "error", role: "alert"},
      el("p", {}, error.message),
      el("button", {type: "button", class: "plain", click: refresh}, "Try again")));
  }
}

export function start() {
  find("refresh").addEventListener("click", refresh);
}
