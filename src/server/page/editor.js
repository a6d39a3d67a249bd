// SPDX-License-Identifier: Apache-2.0
// Editing a message at its place.
import {el, grow} from "./dom.js";

/** Enter alone, and not the one that ends the choice of a character. */
export function sends(event) {
  return event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229;
}

/** The field and what stands below it. `send(text)` of a text that is not empty; `cancel()`. */
export function makeEditor(text, {send, cancel}) {
  const area = el("textarea", {"aria-label": "Edit your message", rows: "2"});
  area.value = text;
  const done = () => {
    if (area.value.trim()) send(area.value.trim());
  };
  area.addEventListener("input", () => grow(area));
  area.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      cancel();
    } else if (sends(event)) {
      event.preventDefault();
      done();
    }
  });
  return {area, below: [
    el("p", {class: "quiet"}, "This version is kept beside the new one."),
    el("button", {type: "button", class: "plain", click: cancel}, "Cancel"),
    el("button", {type: "button", class: "strong", click: done}, "Send")]};
}
