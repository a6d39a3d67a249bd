// SPDX-License-Identifier: Apache-2.0
// The answers that come: at most one of a conversation. It goes on while the reader looks at
// another one.
import * as api from "./api.js";
import {path, touch} from "./conversation.js";
import * as conversations from "./conversations.js";
import {announce, count} from "./dom.js";
import * as models from "./models.js";
import * as store from "./store.js";

const SAVE_MS = 500, WATCH_MS = 1000;
const running = new Map(); // the AbortController by the id of the conversation

export const isRunning = ({id}) => running.has(id);
export const stop = ({id}) => running.get(id)?.abort();
export const stopAll = () => running.forEach((controller) => controller.abort());

export const hasBegun = (message) => Boolean(message.text || message.reasoning);

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
  return {...await models.fields(), messages: wire(before, system), ...sampling};
}

// Says why nothing comes yet, as long as nothing does.
function watch(message, changed) {
  const look = async () => {
    const {slots, busy, queued, loading} = await api.health().catch(() => ({}));
    if (message.state !== "streaming" || hasBegun(message)) return;
    const waiting = loading > 0 ? "The model is being loaded" : queued > 0 && busy >= slots
      ? `In the queue: ${slots === 1 ? "the slot is" : `all ${slots} slots are`} busy, ` +
        `${count(queued, "request")} waiting`
      : "The prompt is being read";
    changed(waiting);
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

// Takes one part of the stream over into the message; true if it brought text.
function take(message, part, times) {
  const {content: text, reasoning_content: reasoning} = part.choices?.[0]?.delta ?? {};
  if (part.usage) {
    const {prompt_tokens: prompt = 0, completion_tokens: tokens = 0} = part.usage;
    message.tokens = tokens;
    message.used = prompt + tokens;
  }
  if (!text && !reasoning) return false;
  const now = performance.now();
  times.first ||= now;
  message.text += text ?? "";
  if (reasoning) message.reasoning = (message.reasoning ?? "") + reasoning;
  message.first = (times.first - times.begin) / 1000;
  message.seconds = (now - times.first) / 1000;
  return true;
}

async function receive(message, request, signal, grown) {
  const times = {begin: performance.now(), first: 0};
  let finish = null, told = 0;
  try {
    for await (const part of api.chat(request, signal)) {
      finish = part.choices?.[0]?.finish_reason ?? finish;
      const reasoned = hasBegun(message);
      if (!take(message, part, times)) continue;
      if (message.reasoning && !reasoned) announce("The model is reasoning.");
      told = speak(message, told, false);
      grown();
    }
  } finally {
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

/** Asks for the answer `message`, the last of its conversation's path, and fills it. `changed` is
 *  called as it grows, with a text as long as it waits, and before this resolves. */
export async function ask(conversation, message, changed) {
  const before = path(conversation).slice(0, -1), controller = new AbortController();
  let savedAt = performance.now();
  const grown = () => {
    changed();
    if (performance.now() - savedAt < SAVE_MS) return;
    savedAt = performance.now();
    touch(conversation, message);
    conversations.keep(conversation);
  };
  running.set(conversation.id, controller);
  conversations.keep(conversation);
  const timer = watch(message, changed);
  try {
    const request = await body(before);
    message.model = conversation.model = request.model;
    const finish = await receive(message, request, controller.signal, grown);
    message.state = finish === "length" ? "length" : "done";
    if (!message.text) announce("The answer is empty.");
  } catch (error) {
    if (controller.signal.aborted) message.state = "stopped";
    else fail(message, error);
  }
  clearInterval(timer);
  if (running.get(conversation.id) === controller) running.delete(conversation.id);
  touch(conversation, message);
  if (conversations.find(conversation.id)) conversations.keep(conversation);
  changed();
}
