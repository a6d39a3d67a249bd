// SPDX-License-Identifier: Apache-2.0
// The prefill as a picture: one lane per processor, in it one row per chunk, and hatched where the
// processor had nothing to do. Below it the same as tables.
import {makeCursor} from "./cursor.js";
import {count, el, number, percent, seconds, svg} from "./dom.js";
import {processorName} from "./words.js";

const KINDS = {
  attn_norm: "Norm", qkv: "QKV", attention: "Attention", o: "Output", ffn_norm: "Norm", ffn: "FFN",
  shadow: "Shadow",
};
const LANE_MIN = 44, LANE_MAX = 176, ROW = 15, GAP = 14, TOP = 6, AXIS = 24, MIN_WIDTH = 560;
const ZOOM_MAX = 64;

/** The events of /stint/last in order, the lanes with what they did, and the whole's borders. */
export function lanesOf(last) {
  const {events} = last.prefill;
  const sorted = [...events].sort((a, b) => a.begin - b.begin || a.end - b.end);
  const begin = sorted[0].begin, end = Math.max(...sorted.map((event) => event.end));
  const processors = ["npu", "cpu", ...sorted.map((event) => event.processor)];
  const lanes = [...new Set(processors)].map((processor) => {
    const own = sorted.filter((event) => event.processor === processor);
    const bubbles = [];
    let now = begin, busy = 0;
    for (const event of own) {
      if (event.begin > now) bubbles.push({begin: now, end: event.begin});
      busy += Math.max(0, event.end - Math.max(now, event.begin));
      now = Math.max(now, event.end);
    }
    if (end > now) bubbles.push({begin: now, end});
    return {processor, name: processorName(processor, last), bubbles, busy, n: own.length};
  }).filter((lane) => lane.n > 0);
  const chunks = Math.max(...sorted.map((event) => event.chunk)) + 1;
  const names = new Map(lanes.map(({processor, name}) => [processor, name]));
  return {sorted, lanes, names, begin, end, chunks};
}

function say(event, {names, begin}) {
  return `${names.get(event.processor)}, ${KINDS[event.kind] ?? event.kind}, ` +
    `layer ${event.layer}, chunk ${event.chunk}: ${seconds(event.end - event.begin)}, ` +
    `at ${seconds(event.begin - begin)}`;
}

// 1, 2 or 5 times a power of ten, so that ticks stand about 90 pixels apart.
function tickStep(total, width) {
  const raw = total / Math.max(width / 90, 1), power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].find((factor) => factor * power >= raw) * power;
}

class Chart {
  constructor(data, width) {
    Object.assign(this, data);
    this.width = width;
    this.total = Math.max(this.end - this.begin, 1e-9);
    this.lane = Math.min(Math.max(this.chunks * ROW, LANE_MIN), LANE_MAX);
    this.row = this.lane / this.chunks;
    this.height = TOP + this.lanes.length * (this.lane + GAP) + AXIS;
    this.top = new Map(this.lanes.map(({processor}, i) =>
      [processor, TOP + i * (this.lane + GAP)]));
  }

  x(time) {
    return (time - this.begin) / this.total * (this.width - 2) + 1;
  }

  box(event) {
    const x = this.x(event.begin);
    return {x, y: this.top.get(event.processor) + event.chunk * this.row,
            width: Math.max(this.x(event.end) - x - 0.4, 0.6),
            height: Math.max(this.row - (this.row > 6 ? 1.5 : 0.3), 1)};
  }

  axis() {
    const step = tickStep(this.total, this.width), group = svg("g", {class: "axis"});
    for (let time = 0; time <= this.total * 1.0001; time += step) {
      const x = this.x(this.begin + time), last = x > this.width - 40;
      group.append(svg("line", {x1: x, x2: x, y1: 0, y2: this.height - AXIS}),
        svg("text", {x, y: this.height - 8,
                     "text-anchor": time === 0 ? "start" : last ? "end" : "middle"},
          `${number(time * 1e3)} ms`));
    }
    return group;
  }

  draw() {
    const chart = svg("svg", {class: "lanes", width: this.width, height: this.height,
                              viewBox: `0 0 ${this.width} ${this.height}`});
    chart.append(svg("defs", {}, svg("pattern", {id: "hatch", width: 5, height: 5,
      patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)"},
      svg("line", {class: "hatch", x1: 0, y1: 0, x2: 0, y2: 5}))));
    chart.append(this.axis());
    for (const {processor, bubbles} of this.lanes) {
      const y = this.top.get(processor);
      chart.append(svg("rect", {class: "lane", x: 0, y, width: this.width, height: this.lane}));
      for (const {begin, end} of bubbles) {
        const x = this.x(begin), width = this.x(end) - x;
        if (width >= 0.5) chart.append(svg("rect", {class: "bubble", x, y, width,
                                                    height: this.lane}));
      }
      for (let c = 1; c < this.chunks && this.row > 3; c++) {
        chart.append(svg("line", {class: "row", x1: 0, x2: this.width, y1: y + c * this.row - 0.75,
                                  y2: y + c * this.row - 0.75}));
      }
    }
    this.sorted.forEach((event, i) => chart.append(svg("rect",
      {...this.box(event), class: `event ${event.kind}`, "data-mark": i})));
    this.frame = svg("rect", {class: "frame", rx: 1.5, hidden: true});
    chart.append(this.frame);
    return chart;
  }

  show(i) {
    const {x, y, width, height} = this.box(this.sorted[i]);
    const place = {x: x - 1.5, y: y - 1.5, width: width + 3, height: height + 3};
    for (const [name, value] of Object.entries(place)) this.frame.setAttribute(name, value);
    this.frame.removeAttribute("hidden");
    return x;
  }
}

// Left and right stay in the lane; up and down go to what another lane did at that time.
function move(sorted, i, key) {
  const at = sorted[i];
  if (key === "ArrowRight" || key === "ArrowLeft") {
    const by = key === "ArrowRight" ? 1 : -1;
    for (let j = i + by; sorted[j]; j += by) if (sorted[j].processor === at.processor) return j;
    return i;
  }
  if (key !== "ArrowUp" && key !== "ArrowDown") return null;
  let best = i, distance = Infinity;
  sorted.forEach((event, j) => {
    const away = Math.abs(event.begin - at.begin);
    if (event.processor !== at.processor && away < distance) [best, distance] = [j, away];
  });
  return best;
}

function legend(sorted) {
  const used = new Set(sorted.map(({kind}) => kind));
  if (used.has("attn_norm")) used.delete("ffn_norm");
  return el("ul", {class: "legend"},
    ...Object.keys(KINDS).filter((kind) => used.has(kind)).map((kind) => el("li", {},
      svg("svg", {class: "swatch", "aria-hidden": "true"},
        svg("rect", {class: `event ${kind}`, width: 12, height: 12, rx: 3})), KINDS[kind])),
    el("li", {}, svg("svg", {class: "swatch", "aria-hidden": "true"},
      svg("rect", {class: "bubble", width: 12, height: 12, rx: 3})), "Bubble: waits"));
}

function table(caption, head, rows) {
  return el("table", {}, el("caption", {}, caption),
    el("thead", {}, el("tr", {}, ...head.map((text) => el("th", {scope: "col"}, text)))),
    el("tbody", {}, ...rows.map(([first, ...rest]) => el("tr", {},
      el("th", {scope: "row"}, first), ...rest.map((text) => el("td", {}, text))))));
}

function tables({sorted, lanes, names, begin, end}) {
  const summary = lanes.map(({name, busy, n, bubbles}) => [name, number(n),
    seconds(busy), seconds(end - begin - busy), number(bubbles.length)]);
  const details = el("details", {class: "as-table"}, el("summary", {}, "The same as tables"));
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    details.append(el("div", {class: "table-scroller", tabindex: "0", role: "region",
                              "aria-label": "Tables of the timeline"},
      table("Processors", ["Processor", "Events", "Works", "Waits", "Bubbles"], summary),
      table("Events", ["Processor", "Kind", "Layer", "Chunk", "From", "Takes"],
        sorted.map((event) => [names.get(event.processor), KINDS[event.kind] ?? event.kind,
          event.layer, event.chunk, seconds(event.begin - begin),
          seconds(event.end - event.begin)]))));
  });
  return details;
}

/** The card's content for the answer of /stint/last, with at least one event. */
export function timeline(last) {
  const data = lanesOf(last), {sorted} = data;
  const readout = el("p", {class: "readout"}, "Point at an event, or use the arrow keys.");
  const strip = el("div", {class: "strip"}), names = el("div", {class: "names"});
  const level = el("output", {class: "zoom-level"}, "1×");
  let zoom = 1, chart = null, selected = -1;

  const select = (i, follow) => {
    selected = i;
    const x = chart.show(i);
    readout.textContent = say(sorted[i], data);
    if (follow && (x < strip.scrollLeft || x > strip.scrollLeft + strip.clientWidth - 20)) {
      strip.scrollLeft = x - strip.clientWidth / 3;
    }
  };
  const draw = () => {
    chart = new Chart(data, Math.max(strip.clientWidth, MIN_WIDTH) * zoom);
    const picture = chart.draw();
    makeCursor(picture, {label: "Timeline of the prefill", count: sorted.length,
      say: (i) => say(sorted[i], data), move: (i, key) => move(sorted, i, key),
      show: (i) => select(i, picture.matches(":focus-visible"))});
    strip.replaceChildren(picture);
    names.replaceChildren(...data.lanes.map(({name, busy}) => {
      const label = el("div", {class: "name"}, el("strong", {}, name),
        el("span", {}, `busy ${percent(busy / chart.total)}`));
      label.style.height = `${chart.lane}px`;
      return label;
    }));
    if (selected >= 0) chart.show(selected);
  };
  const zoomTo = (wanted) => {
    const middle = (strip.scrollLeft + strip.clientWidth / 2) / zoom;
    zoom = Math.min(Math.max(wanted, 1), ZOOM_MAX);
    level.textContent = `${zoom}×`;
    draw();
    strip.scrollLeft = middle * zoom - strip.clientWidth / 2;
  };
  let width = 0;
  new ResizeObserver(() => {
    if (strip.clientWidth && strip.clientWidth !== width) draw();
    width = strip.clientWidth;
  }).observe(strip);

  const zoomButton = (text, label, factor) => el("button",
    {type: "button", class: "plain square", "aria-label": label,
     click: () => zoomTo(zoom * factor)},
    text);
  return [
    el("div", {class: "chart-head"}, legend(sorted), el("div", {class: "zoom"},
      zoomButton("−", "Zoom out", 0.5), level, zoomButton("+", "Zoom in", 2))),
    el("div", {class: "timeline"}, names, strip), readout,
    el("p", {class: "quiet"}, `${count(sorted.length, "event")}, ${count(data.chunks, "chunk")}, ` +
      `one row each; hatched where a processor waits.`),
    tables(data),
  ];
}
