// SPDX-License-Identifier: Apache-2.0
// Conversations as files: Markdown to read, of the path that is shown, and JSON with all versions,
// which can be taken over again.
import {path, read, titleOf} from "./conversation.js";
import * as conversations from "./conversations.js";
import {el} from "./dom.js";

const KIND = "stint conversations", MAX_BYTES = 256 * 1024 * 1024;

function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], {type}));
  el("a", {href: address, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

const fileName = (title) => title.replace(/[^\p{L}\p{N} _-]+/gu, "").trim().slice(0, 60) || "chat";

export function exportText(conversation) {
  const title = titleOf(conversation);
  const turns = path(conversation).map(({role, text, model}) =>
    `## ${role === "user" ? "You" : model || "Answer"}\n\n${text}\n`);
  download(`${fileName(title)}.md`, "text/markdown", [`# ${title}\n`, ...turns].join("\n"));
}

export function exportJson(...list) {
  const name = list.length === 1 ? fileName(titleOf(list[0])) : "stint conversations";
  download(`${name}.json`, "application/json",
    JSON.stringify({kind: KIND, version: 1, conversations: list}, null, 1));
}

/** {n} conversations that were not here, or {error}. What is here already stays as it is. */
export async function importFile(file) {
  if (file.size > MAX_BYTES) return {error: "This file is too large."};
  try {
    const {kind, conversations: list} = JSON.parse(await file.text());
    if (kind !== KIND || !Array.isArray(list)) throw new Error(kind);
    const taken = list.map(read).filter((one) => one && !conversations.find(one.id));
    for (const conversation of taken) await conversations.keep(conversation);
    return {n: taken.length};
  } catch {
    return {error: "This file holds no conversations of stint."};
  }
}
