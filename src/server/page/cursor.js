// SPDX-License-Identifier: Apache-2.0
// One tab stop for a chart of thousands of marks: a slider over them, which the arrow keys, the
// pointer, and a screen reader move. The chart draws; this keeps the place and says what is there.

/** options: label; count; say(i), in words; show(i), highlights; move(i, key), the mark that a key
 *  leads to, or null for a key that is not the chart's. Returns the function that goes to a
 *  mark. */
export function makeCursor(chart, {label, count, say, show, move}) {
  let at = 0;

  function go(i) {
    at = Math.min(Math.max(i, 0), count - 1);
    chart.setAttribute("aria-valuenow", at + 1);
    chart.setAttribute("aria-valuetext", say(at));
    show(at);
  }

  function markOf(event) {
    const mark = event.target.closest?.("[data-mark]");
    return mark && chart.contains(mark) ? Number(mark.dataset.mark) : -1;
  }

  const attributes = {role: "slider", tabindex: 0, "aria-label": label, "aria-valuemin": 1,
                      "aria-valuemax": count, "aria-valuenow": 1, "aria-valuetext": say(0)};
  for (const [name, value] of Object.entries(attributes)) chart.setAttribute(name, value);
  chart.addEventListener("focus", () => go(at));
  chart.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const next = {Home: 0, End: count - 1}[event.key] ?? move(at, event.key);
    if (next == null) return;
    event.preventDefault();
    go(next);
  });
  for (const kind of ["pointerover", "pointerdown"]) {
    chart.addEventListener(kind, (event) => {
      const mark = markOf(event);
      if (mark >= 0) go(mark);
    });
  }
  return go;
}

/** The next of a row for the keys of a slider, or null. */
export function step(i, key) {
  return {ArrowRight: i + 1, ArrowLeft: i - 1, ArrowUp: i + 1, ArrowDown: i - 1,
          PageUp: i + 10, PageDown: i - 10}[key] ?? null;
}
