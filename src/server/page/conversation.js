// SPDX-License-Identifier: Apache-2.0
// A conversation: a tree of messages, of which one path is shown. A question that was edited, and
// an answer that was asked for again, stand beside the version before them; nothing is replaced.
//   {id, title, created, changed, model, next,
//    messages: [{id, parent, next, rev, role, text, ...}]}
// `parent` is null for a first message, `next` the chosen one of those that follow; messages stand
// behind their parents. `rev` counts the changes of a message. An answer also has {reasoning,
// state, error, tokens, seconds, first, used, model}; reasoning is shown and never sent back.
const ROLES = ["user", "assistant"], TITLE_LENGTH = 60;

/** Also where the page came over plain http, and has no crypto.randomUUID. */
function newId() {
  return [...crypto.getRandomValues(new Uint8Array(12))]
    .map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function make() {
  const now = Date.now();
  return {id: newId(), title: "", created: now, changed: now, model: "", next: null, messages: []};
}

const holder = (conversation, id) =>
  conversation.messages.find((message) => message.id === id) ?? conversation;

/** The messages that are shown, the first one first. */
export function path(conversation) {
  const shown = [], byId = new Map(conversation.messages.map((message) => [message.id, message]));
  for (let at = byId.get(conversation.next); at; at = byId.get(at.next)) shown.push(at);
  return shown;
}

/** The messages that stand at the same place, in the order in which they came. */
export function versions(conversation, message) {
  return conversation.messages.filter(({parent}) => parent === message.parent);
}

export function touch(conversation, message) {
  conversation.changed = Date.now();
  message.rev = (message.rev ?? 0) + 1;
}

/** Shows the path that leads through the message. */
export function choose(conversation, message) {
  const before = holder(conversation, message.parent);
  before.next = message.id;
  before.rev = (before.rev ?? 0) + 1;
}

/** Adds a message behind that of the id `parent`, beside those that stand there, and shows it. */
export function append(conversation, parent, fields) {
  const message = {id: newId(), parent, next: null, rev: 0, ...fields};
  conversation.messages.push(message);
  choose(conversation, message);
  touch(conversation, message);
  return message;
}

export function titleOf(conversation) {
  if (conversation.title) return conversation.title;
  const first = conversation.messages.find(({role, text}) => role === "user" && text.trim());
  const line = first?.text.trim().split("\n", 1)[0] ?? "New chat";
  return line.length > TITLE_LENGTH ? `${line.slice(0, TITLE_LENGTH - 1).trimEnd()}…` : line;
}

/** Whether each of the words stands in the title or in a message, of whatever version. */
export function matches(conversation, words) {
  const texts = [titleOf(conversation), ...conversation.messages.map(({text}) => text)]
    .map((text) => text.toLowerCase());
  return words.every((word) => texts.some((text) => text.includes(word)));
}

/** Both sides' messages; of the same one that which has changed more often. */
export function merge(stored, mine) {
  const byId = new Map(stored.messages.map((message) => [message.id, message]));
  for (const message of mine.messages) {
    const other = byId.get(message.id);
    if (!other || (message.rev ?? 0) >= (other.rev ?? 0)) byId.set(message.id, message);
  }
  const newer = stored.changed > mine.changed ? stored : mine;
  return {...newer, messages: [...byId.values()]};
}

const isText = (value) => typeof value === "string";

function readMessage(kept, known) {
  if (!ROLES.includes(kept?.role) || !isText(kept.text) || !isText(kept.id) ||
      known.has(kept.id) || !isText(kept.reasoning ?? "")) return null;
  if (kept.parent !== null && !known.has(kept.parent)) return null; // so there is no circle
  const message = {...kept, rev: Number(kept.rev) || 0, next: isText(kept.next) ? kept.next : null};
  // The page was left or reloaded while this one came.
  if (message.state === "streaming") message.state = "stopped";
  known.set(message.id, message);
  return message;
}

/** What a store or a file holds, as a conversation; null if it is none. */
export function read(kept) {
  if (!isText(kept?.id) || !Array.isArray(kept.messages)) return null;
  const known = new Map();
  const messages = kept.messages.map((message) => readMessage(message, known)).filter(Boolean);
  for (const message of messages) {
    if (known.get(message.next)?.parent !== message.id) message.next = null;
  }
  const first = known.get(kept.next)?.parent === null ? kept.next
    : messages.findLast(({parent}) => parent === null)?.id ?? null;
  return {id: kept.id, title: isText(kept.title) ? kept.title : "", model:
          isText(kept.model) ? kept.model : "", created: Number(kept.created) || 0, changed:
          Number(kept.changed) || 0, next: first, messages};
}

/** Messages one after the other, as pages kept them before there were trees. */
export function fromList(list) {
  const conversation = make();
  let parent = null;
  for (const message of list) {
    const made = readMessage({...message, id: newId(), parent: null}, new Map());
    if (made) parent = append(conversation, parent, {...made, parent}).id;
  }
  return conversation;
}
