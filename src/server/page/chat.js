// SPDX-License-Identifier: Apache-2.0
// The view "Chat": the conversation that is open, and where the reader writes.
import * as answers from "./answer.js";
import {append, choose, make, path, titleOf, touch, versions} from "./conversation.js";
import * as conversations from "./conversations.js";
import {announce, find, grow, setChildren} from "./dom.js";
import {sends} from "./editor.js";
import * as meter from "./meter.js";
import * as models from "./models.js";
import {askForKey} from "./settings.js";
import * as store from "./store.js";
import {Turn} from "./turn.js";

const DRAW_SHARE = 4; // drawing takes at most one part in so many of the time
const scroller = find("scroller"), prompt = find("prompt");
let open = make();
let turns = new Map(); // by message
let pinned = true;     // to the end: new text scrolls the conversation
let whenAnswered = () => {}, whenShown = () => {};

export const current = () => open;
/** `listener()` after another conversation has been opened. */
export const onShow = (listener) => (whenShown = listener);

// ---- what is shown

function follow() {
  if (pinned) scroller.scrollTop = scroller.scrollHeight;
}

function noteScroll() {
  pinned = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 48;
  find("latest").hidden = pinned;
}

function showState() {
  const answering = answers.isRunning(open);
  find("empty").hidden = turns.size > 0;
  find("turns").hidden = turns.size === 0;
  find("send").hidden = answering;
  find("stop").hidden = !answering;
  find("send").disabled = prompt.value.trim() === "";
  find("not-kept").hidden = conversations.areKept();
  meter.show(open, prompt.value);
}

/** Shows what depends on which models there are and which one answers. */
export function showModels() {
  for (const [{role}, turn] of turns) if (role === "assistant") turn.update();
  showState();
}

// Turns of messages that stay are not built again: what is open or selected in them stays, too.
function draw() {
  const before = turns;
  turns = new Map(path(open).map((message) => {
    const turn = before.get(message) ?? new Turn(message, actions);
    const beside = versions(open, message);
    turn.showVersions(beside.indexOf(message), beside.length);
    return [message, turn];
  }));
  setChildren(find("turns"), [...turns.values()].map(({node}) => node));
  showState();
  follow();
}

/** Shows this conversation; a new one by default. */
export function show(conversation = make()) {
  open = conversation;
  pinned = true;
  store.writeForTab("open", open.id);
  models.choose(open.model);
  draw();
  whenShown();
}

// ---- the answer

// Draws what has grown at most once a frame, and seldom where drawing takes long.
function pace(work) {
  let due = false, idleUntil = 0;
  const run = () => {
    due = false;
    const begin = performance.now();
    work();
    const end = performance.now();
    idleUntil = end + (end - begin) * (DRAW_SHARE - 1);
  };
  return () => {
    if (due) return;
    due = true;
    const wait = idleUntil - performance.now();
    if (wait > 16) setTimeout(run, wait);
    else requestAnimationFrame(run);
  };
}

async function answer(message) {
  const conversation = open;
  pinned = true;
  const update = () => {
    const turn = turns.get(message);
    if (!turn) return; // another conversation or version is shown
    turn.update();
    follow();
    meter.show(open, prompt.value);
  };
  const paced = pace(() => message.state === "streaming" && update()); // the last time is below
  const done = answers.ask(conversation, message, (waiting) => {
    const turn = turns.get(message);
    if (waiting && turn && turn.waiting !== waiting) {
      turn.waiting = waiting;
      announce(waiting);
    }
    paced();
  });
  draw();
  await done;
  update();
  showState();
  if (conversation !== open) announce(`${titleOf(conversation)}: the answer is complete.`);
  whenAnswered();
  if (message.error?.status !== 401 || !await askForKey(message.error.message)) return;
  if (conversation === open) again(message);
}

const streaming = () => ({role: "assistant", text: "", state: "streaming"});

// ---- what the reader does

function focusPrompt() {
  if (matchMedia("(pointer: coarse)").matches) prompt.blur(); // puts the screen's keyboard away
  else prompt.focus();
}

export function stop() {
  if (!answers.isRunning(open)) return;
  answers.stop(open);
  announce("Stopped.");
  prompt.focus();
}

function askBehind(parent, text) {
  const question = append(open, parent, {role: "user", text});
  const message = append(open, question.id, streaming());
  focusPrompt();
  answer(message);
}

function send() {
  const text = prompt.value.trim();
  if (!text || answers.isRunning(open)) return;
  prompt.value = "";
  grow(prompt);
  askBehind(path(open).at(-1)?.id ?? null, text);
}

function edit(message, text) {
  answers.stop(open);
  askBehind(message.parent, text);
}

// An answer that has no text is asked for again at its place, another one gets a version beside it.
function again(message) {
  answers.stop(open);
  focusPrompt();
  if (answers.hasBegun(message)) {
    answer(append(open, message.parent, streaming()));
    return;
  }
  delete message.error;
  Object.assign(message, streaming());
  touch(open, message);
  turns.get(message)?.update();
  answer(message);
}

function showVersion(message, by) {
  const beside = versions(open, message), wanted = beside[beside.indexOf(message) + by];
  if (!wanted) return;
  choose(open, wanted);
  conversations.keep(open);
  pinned = false;
  draw();
  announce(`Version ${beside.indexOf(wanted) + 1} of ${beside.length}.`);
  turns.get(wanted).focusVersions(by);
}

const actions = {edit, again, showVersion};

export function startNew() {
  show();
  announce("A new chat.");
  location.hash = "#chat";
  prompt.focus();
}

function listen() {
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
  // A browser that keeps the page for "Back" would go on receiving.
  addEventListener("pagehide", answers.stopAll);
}

/** `answered` is called after each answer, also one that failed. */
export function start(answered) {
  whenAnswered = answered;
  listen();
  conversations.onChange((conversation) => {
    if (conversation === open && !answers.isRunning(open)) draw();
    find("not-kept").hidden = conversations.areKept();
  });
  show(conversations.find(store.readForTab("open")));
}
