// SPDX-License-Identifier: Apache-2.0
// Where conversations are kept: this browser's IndexedDB, one record each. Two tabs may write the
// same one; each write is merged with what is there, and other tabs are told. Where the browser
// keeps nothing (a private window may not), the page works on, and `save` says no.
import {merge, read} from "./conversation.js";

const NAME = "stint", STORE = "conversations";
const channel = "BroadcastChannel" in window ? new BroadcastChannel("stint.conversations") : null;
let database = null;

function settled(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function openDatabase() {
  const request = indexedDB.open(NAME, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STORE, {keyPath: "id"});
  return settled(request);
}

/** Does `work(store)` in one transaction, and resolves to what it came to once that is on disk. */
async function within(mode, work) {
  const transaction = database.transaction(STORE, mode);
  const done = new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onabort = () => reject(transaction.error);
  });
  done.catch(() => {}); // what `work` throws comes first
  const value = await work(transaction.objectStore(STORE));
  transaction.commit?.();
  await done;
  return value;
}

/** All conversations that are kept. */
export async function open() {
  try {
    database = await openDatabase();
    // Asks the browser not to clear it when the disk is short.
    navigator.storage?.persist?.().catch(() => {});
    const kept = await within("readonly", (store) => settled(store.getAll()));
    return kept.map(read).filter(Boolean);
  } catch {
    database = null;
    return [];
  }
}

/** Resolves to whether it is kept. */
export async function save(conversation) {
  const mine = structuredClone(conversation); // as it is now: it may change before its turn comes
  try {
    await within("readwrite", async (store) => {
      const stored = read(await settled(store.get(mine.id)));
      await settled(store.put(stored ? merge(stored, mine) : mine));
    });
    channel?.postMessage({id: mine.id});
    return true;
  } catch {
    return false;
  }
}

export async function remove(id) {
  try {
    await within("readwrite", (store) => settled(store.delete(id)));
    channel?.postMessage({id});
    return true;
  } catch {
    return false;
  }
}

/** `changed(id, conversation)` after each change by another tab; null: it is no longer kept. */
export function watch(changed) {
  channel?.addEventListener("message", async ({data}) => {
    if (!database || typeof data?.id !== "string") return;
    const kept = await within("readonly", (store) => settled(store.get(data.id))).catch(() => null);
    changed(data.id, read(kept));
  });
}
