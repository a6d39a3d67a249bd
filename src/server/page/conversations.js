// SPDX-License-Identifier: Apache-2.0
// All conversations of this browser, in memory and, as they change, in its archive.
import * as archive from "./archive.js";
import {fromList} from "./conversation.js";
import * as store from "./store.js";

let all = [];
let kept = true; // whether the last change is in the archive
const listeners = [];

/** `listener(conversation)` after each change; without one, of the list itself. */
export const onChange = (listener) => listeners.push(listener);

const tell = (conversation) => listeners.forEach((listener) => listener(conversation));

/** The one that changed last comes first. */
export const list = () => [...all].sort((a, b) => b.changed - a.changed);
export const find = (id) => all.find((conversation) => conversation.id === id);
export const areKept = () => kept;

async function save(conversation) {
  const before = kept;
  kept = await archive.save(conversation);
  if (kept !== before) tell();
  return kept;
}

/** Call it after each change of a conversation, also of a new one; resolves to whether it is kept
 *  in the browser. */
export function keep(conversation) {
  if (!all.includes(conversation)) all.push(conversation);
  tell(conversation);
  return save(conversation);
}

/** Returns the function that brings it back. */
export function discard(conversation) {
  all = all.filter((other) => other !== conversation);
  archive.remove(conversation.id);
  tell();
  return () => keep(conversation);
}

async function takeOld() {
  const old = store.oldConversation();
  if (old.length && await keep(fromList(old))) store.dropOldConversation();
}

/** `isRunning(conversation)`: it changes here, and what another tab says of it can wait. */
export async function load(isRunning) {
  all = await archive.open();
  await takeOld();
  archive.watch((id, stored) => {
    const mine = find(id);
    if (mine && isRunning(mine)) return;
    if (mine && stored) Object.assign(mine, stored);
    else if (mine) all = all.filter((other) => other !== mine);
    else if (stored) all.push(stored);
    tell(mine);
  });
}
