// SPDX-License-Identifier: Apache-2.0
// The view "Chat": the conversation, and the one request that may be under way.
import * as api from "./api.js";
import {announce, count, find} from "./dom.js";
import {askForKey} from "./settings.js";
import * as store from "./store.js";
import {grow, sends, Turn} from "./turn.js";

const SAVE_MS = 500, WATCH_MS = 1000;
const scroller = find("scroller"), prompt = find("prompt");
let turns = [];
let running = null; // the AbortController of the answer that comes
let pinned = true;  // to the end: new text scrolls the conversation
let savedAt = 0;
let whenAnswered = () => {};

// ---- what is kept and shown

function save(force = true) {
  if (!force && performance.now() - savedAt < SAVE_MS) return;
  savedAt = performance.now();
  if (!store.writeConversation(turns.map((turn) => turn.message)) && force) {
    announce("This browser keeps no more of the conversation: its storage is full or forbidden.");
  }
}

function follow() {
  if (pinned) scroller.scrollTop = scroller.scrollHeight;
}

function noteScroll() {
  pinned = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 48;
  find("latest").hidden = pinned;
}

function showState() {
  find("empty").hidden = turns.length > 0;
  find("turns").hidden = turns.length === 0;
  find("send").hidden = running !== null;
  find("stop").hidden = running === null;
  find("send").disabled = prompt.value.trim() === "";
}

function add(message) {
  const turn = new Turn(message, {edit, again});
  turns.push(turn);
  find("turns").append(turn.node);
  return turn;
}

function cutFrom(index) {
  for (const turn of turns.splice(index)) turn.node.remove();
}

// ---- the request

// A template may insist on turns that alternate: answers without text are left out, and what the
// reader said twice in a row becomes one message.
function wire(messages, system) {
  const sent = system ? [{role: "system", content: system}] : [];
  for (const {role, text} of messages) {
    if (!text) continue;
    if (sent.at(-1)?.role === role) sent.at(-1).content += `\n\n${text}`;
    else sent.push({role, content: text});
  }
  return sent;
}

async function body(before) {
  const {system, ...sampling} = store.readSettings();
  return {model: await api.modelName(),
          messages: wire(before.map((turn) => turn.message), system), ...sampling};
}

const began = (message) => Boolean(message.text || message.reasoning);

// Says why nothing comes yet, as long as nothing does.
function watch(turn) {
  const look = async () => {
    const {slots, busy, queued} = await api.health().catch(() => ({}));
    if (turn.message.state !== "streaming" || began(turn.message)) return;
    const before = turn.waiting;
    turn.waiting = queued > 0 && busy >= slots
      ? `In the queue: ${slots === 1 ? "the slot is" : `all ${slots} slots are`} busy, ` +
        `${count(queued, "request")} waiting`
      : "The prompt is being read";
    turn.update();
    if (turn.waiting !== before) announce(turn.waiting);
  };
  setTimeout(look, WATCH_MS / 3);
  return setInterval(look, WATCH_MS);
}

// Whole paragraphs are read aloud as they end, not each token.
function speak(message, told, all) {
  const end = all ? message.text.length : message.text.lastIndexOf("\n\n");
  if (end <= told) return told;
  announce(message.text.slice(told, end).trim());
  return end;
}

async function receive(turn, request, signal) {
  const {message} = turn, begin = performance.now();
  let finish = null, drawn = 0, told = 0, firstAt = 0, parts = 0;
  const draw = () => {
    drawn = 0;
    turn.update();
    follow();
  };
  try {
    for await (const part of api.chat(request, signal)) {
      const choice = part.choices?.[0];
      const {content: text, reasoning_content: reasoning} = choice?.delta ?? {};
      finish = choice?.finish_reason ?? finish;
      if (part.usage) parts = part.usage.completion_tokens ?? parts;
      if (!text && !reasoning) continue;
      if (reasoning && !began(message)) announce("The model is reasoning.");
      const now = performance.now();
      firstAt ||= now;
      message.text += text ?? "";
      if (reasoning) message.reasoning = (message.reasoning ?? "") + reasoning;
      message.tokens = ++parts;
      message.first = (firstAt - begin) / 1000;
      message.seconds = (now - firstAt) / 1000;
      drawn ||= requestAnimationFrame(draw);
      told = speak(message, told, false);
      save(false);
    }
    if (began(message) && parts) message.tokens = parts;
  } finally {
    cancelAnimationFrame(drawn);
    speak(message, told, true);
  }
  return finish;
}

function fail(message, error) {
  message.state = "error";
  message.error = {message: error instanceof api.ApiError ? error.message : `${error}`,
                   status: error.status ?? 0};
  if (error.retryAfter != null) message.error.retryAt = Date.now() + error.retryAfter * 1000;
}

async function answer() {
  const before = turns.slice();
  const turn = add({role: "assistant", text: "", state: "streaming"}), {message} = turn;
  const stop = new AbortController();
  running = stop;
  pinned = true;
  showState();
  follow();
  save();
  const timer = watch(turn);
  let wantsKey = false;
  try {
    const finish = await receive(turn, await body(before), stop.signal);
    message.state = finish === "length" ? "length" : "done";
    if (!message.text) announce("The answer is empty.");
  } catch (error) {
    if (stop.signal.aborted) message.state = "stopped";
    else fail(message, error);
    wantsKey = message.error?.status === 401;
  }
  clearInterval(timer);
  if (running === stop) running = null;
  turn.update();
  showState();
  follow();
  if (turns.includes(turn)) save();
  whenAnswered();
  if (wantsKey && await askForKey(message.error.message)) again(turn);
}

// ---- what the reader does

function focusPrompt() {
  if (matchMedia("(pointer: coarse)").matches) prompt.blur(); // puts the screen's keyboard away
  else prompt.focus();
}

export function stop() {
  if (!running) return;
  running.abort();
  announce("Stopped.");
  prompt.focus();
}

function send() {
  const text = prompt.value.trim();
  if (!text || running) return;
  prompt.value = "";
  grow(prompt);
  add({role: "user", text});
  focusPrompt();
  answer();
}

function edit(turn, text) {
  running?.abort();
  cutFrom(turns.indexOf(turn) + 1);
  turn.message.text = text;
  turn.update();
  focusPrompt();
  answer();
}

function again(turn) {
  running?.abort();
  cutFrom(turns.indexOf(turn));
  focusPrompt();
  answer();
}

function startNew() {
  running?.abort();
  cutFrom(0);
  save();
  showState();
  announce("A new chat.");
  location.hash = "#chat";
  prompt.focus();
}

/** `answered` is called after each answer, also one that failed. */
export function start(answered) {
  whenAnswered = answered;
  for (const message of store.readConversation()) add(message);
  find("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  prompt.addEventListener("keydown", (event) => {
    if (!sends(event)) return;
    event.preventDefault();
    send();
  });
  prompt.addEventListener("input", () => {
    grow(prompt);
    showState();
  });
  find("stop").addEventListener("click", stop);
  find("new-chat").addEventListener("click", startNew);
  find("latest").addEventListener("click", () => {
    pinned = true;
    follow();
    prompt.focus();
  });
  scroller.addEventListener("scroll", noteScroll, {passive: true});
  addEventListener("pagehide", () => {
    running?.abort(); // a browser that keeps the page for "Back" would go on receiving
    save();
  });
  showState();
  follow();
}
