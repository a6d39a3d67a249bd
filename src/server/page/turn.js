// SPDX-License-Identifier: Apache-2.0
// One message of the conversation on the screen: its text, what can be done with it, and beside an
// answer how it went.
import {announce, copy, count, el, icon, iconButton, number, seconds} from "./dom.js";
import {render} from "./markdown.js";

const NOTES = {
  stopped: "Stopped here.",
  length: "Ended at the most tokens that settings or context allow.",
};

function copyButton(message) {
  const button = iconButton("copy", "Copy", async () => {
    let said = "Copied.";
    await copy(message.text).catch(() => (said = "It could not be copied."));
    announce(said);
    button.replaceChildren(icon(said === "Copied." ? "done" : "copy"));
    setTimeout(() => button.replaceChildren(icon("copy")), 1500);
  });
  return button;
}

/** The message grows in its node: call `update` after each change of it. */
export class Turn {
  /** actions: {edit(turn, text), again(turn)}, called when the reader wants it. */
  constructor(message, actions) {
    this.message = message;
    this.actions = actions;
    this.text = el("div", {class: "text"});
    this.after = el("div", {class: "after"});
    const user = message.role === "user";
    this.node = el("li", {class: `turn ${user ? "user" : "answer"}`},
      el("h2", {class: "unseen"}, user ? "You" : "Answer"), this.text, this.after);
    this.thoughts = el("div", {class: "thoughts"});
    this.reasoning = el("details", {class: "reasoning"}, el("summary", {}, "Reasoning"),
      this.thoughts);
    this.waiting = "";
    this.update();
  }

  update() {
    if (this.message.role === "user") this.showQuestion();
    else this.showAnswer();
  }

  showQuestion() {
    this.node.classList.remove("editing");
    this.text.textContent = this.message.text;
    this.after.replaceChildren(
      iconButton("edit", "Edit and send again", () => this.openEditor()),
      copyButton(this.message));
  }

  showAnswer() {
    const {state, text, reasoning} = this.message, streaming = state === "streaming";
    this.node.setAttribute("aria-busy", String(streaming));
    this.node.classList.toggle("growing", streaming && text !== "");
    if (reasoning && !this.reasoning.isConnected) this.text.before(this.reasoning);
    render(this.thoughts, reasoning ?? "");
    render(this.text, text);
    if (streaming) {
      this.after.replaceChildren(...(text ? [] : [this.waitingLine()]));
      return;
    }
    const line = el("div", {class: "line"});
    if (text) line.append(copyButton(this.message));
    line.append(iconButton("again", "Answer again", () => this.actions.again(this)));
    const facts = this.facts();
    if (facts) line.append(el("a", {class: "facts", href: "#device",
                                    title: "What the device did"}, facts));
    this.after.replaceChildren(...[this.note(), state === "error" ? null : line].filter(Boolean));
  }

  waitingLine() {
    return el("p", {class: "waiting"}, el("span", {class: "dots", "aria-hidden": "true"},
      el("i"), el("i"), el("i")), el("span", {}, this.message.reasoning ? "Reasoning"
      : this.waiting || "Waiting for the first token"));
  }

  facts() {
    const {tokens, seconds: taken, first} = this.message;
    if (!tokens) return "";
    const rate = tokens > 1 && taken > 0 ? `${number((tokens - 1) / taken)} tokens/s` : "";
    return [count(tokens, "token"), rate, `first after ${seconds(first)}`].filter(Boolean)
      .join(" · ");
  }

  note() {
    const {state, error} = this.message;
    if (NOTES[state]) return el("p", {class: "note"}, NOTES[state]);
    if (state !== "error") return null;
    return el("div", {class: "error", role: "alert"},
      el("p", {}, error?.message ?? "The answer failed."),
      error?.retryAt ? this.countdown(error.retryAt) : null,
      el("button", {type: "button", class: "plain retry", click: () => this.actions.again(this)},
        icon("again"), "Try again"));
  }

  // Counts down on the screen; a screen reader hears the first number only.
  countdown(retryAt) {
    const left = () => Math.ceil((retryAt - Date.now()) / 1000);
    if (left() <= 0) return null;
    const line = el("p", {class: "when"}, `There should be room in ${left()} s.`);
    const shown = el("p", {class: "when", "aria-hidden": "true"}, line.textContent);
    line.className = "unseen";
    const timer = setInterval(() => {
      shown.textContent = left() > 0 ? `There should be room in ${left()} s.`
        : "There should be room now.";
      if (left() <= 0 || !shown.isConnected) clearInterval(timer);
    }, 1000);
    return el("div", {}, line, shown);
  }

  openEditor() {
    const area = el("textarea", {"aria-label": "Edit your message", rows: "2"});
    area.value = this.message.text;
    const close = () => {
      this.update();
      this.after.querySelector("button").focus();
    };
    const send = () => {
      if (area.value.trim()) this.actions.edit(this, area.value.trim());
    };
    area.addEventListener("input", () => grow(area));
    area.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        close();
      } else if (sends(event)) {
        event.preventDefault();
        send();
      }
    });
    this.text.replaceChildren(area);
    this.after.replaceChildren(
      el("p", {class: "quiet"}, "What follows is answered anew."),
      el("button", {type: "button", class: "plain", click: close}, "Cancel"),
      el("button", {type: "button", class: "strong", click: send}, "Send"));
    this.node.classList.add("editing");
    grow(area);
    area.focus();
  }
}

/** Enter alone, and not the one that ends the choice of a character. */
export function sends(event) {
  return event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229;
}

/** As high as its text, up to what the style sheet allows. */
export function grow(area) {
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight + 2}px`;
}
