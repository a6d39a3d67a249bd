// SPDX-License-Identifier: Apache-2.0
// One message of the conversation on the screen: its text, what can be done with it, and beside an
// answer how it went.
import {announce, copy, count, el, grow, icon, iconButton, number, seconds} from "./dom.js";
import {makeEditor} from "./editor.js";
import {render} from "./markdown.js";
import {several} from "./models.js";

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
  /** actions: {edit(message, text), again(message), showVersion(message, by)}, called when the
   *  reader wants it; `by` is -1 or 1. */
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
    this.arrows = [[-1, "left", "Previous version"], [1, "right", "Next version"]].map(
      ([by, name, label]) => iconButton(name, label, () => actions.showVersion(message, by)));
    this.version = el("span", {role: "img"});
    this.versions = el("div", {class: "versions"}, this.arrows[0], this.version, this.arrows[1]);
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
      copyButton(this.message), this.versions);
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
    if (state !== "error") {
      line.append(iconButton("again", "Answer again", () => this.actions.again(this.message)));
    }
    line.append(this.versions);
    const facts = this.facts();
    if (facts) line.append(el("a", {class: "facts", href: "#device",
                                    title: "What the device did"}, facts));
    this.after.replaceChildren(...[this.note(), line].filter(Boolean));
  }

  waitingLine() {
    return el("p", {class: "waiting"}, el("span", {class: "dots", "aria-hidden": "true"},
      el("i"), el("i"), el("i")), el("span", {}, this.message.reasoning ? "Reasoning"
      : this.waiting || "Waiting for the first token"));
  }

  facts() {
    const {tokens, seconds: taken, first, model} = this.message;
    if (!tokens || !Number.isFinite(first)) return "";
    const rate = tokens > 1 && taken > 0 ? `${number((tokens - 1) / taken)} tokens/s` : "";
    return [several() ? model : "", count(tokens, "token"), rate,
      `first after ${seconds(first)}`].filter(Boolean).join(" · ");
  }

  note() {
    const {state, error} = this.message;
    if (NOTES[state]) return el("p", {class: "note"}, NOTES[state]);
    if (state !== "error") return null;
    return el("div", {class: "error", role: "alert"},
      el("p", {}, error?.message ?? "The answer failed."),
      error?.retryAt ? this.countdown(error.retryAt) : null,
      el("button", {type: "button", class: "plain retry",
                    click: () => this.actions.again(this.message)},
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
    const {area, below} = makeEditor(this.message.text, {
      send: (text) => {
        this.update();
        this.actions.edit(this.message, text);
      },
      cancel: () => {
        this.update();
        this.after.querySelector("button").focus();
      },
    });
    this.text.replaceChildren(area);
    this.after.replaceChildren(...below);
    this.node.classList.add("editing");
    grow(area);
    area.focus();
  }

  /** This is version `index` of `n` at its place. */
  showVersions(index, n) {
    this.versions.hidden = n < 2;
    this.version.textContent = `${index + 1}/${n}`;
    this.version.setAttribute("aria-label", `Version ${index + 1} of ${n}`);
    this.arrows[0].disabled = index === 0;
    this.arrows[1].disabled = index === n - 1;
  }

  /** The arrow by which the reader came here, or where there is no further one the other. */
  focusVersions(by) {
    const wanted = this.arrows[by < 0 ? 0 : 1];
    (wanted.disabled ? this.arrows[by < 0 ? 1 : 0] : wanted).focus();
  }
}
