// SPDX-License-Identifier: Apache-2.0
// How much of the model's context the conversation takes: what the server counted with the last
// answer, as it grows, and the tokens of what the reader is writing.
import * as api from "./api.js";
import {path} from "./conversation.js";
import {find, number} from "./dom.js";
import * as models from "./models.js";

const ASK_MS = 250, NEARLY = 0.85;
// What the reader writes, and its tokens once the server has counted them.
let draft = {text: "", tokens: 0};
let timer = 0, asking = null;

// Asks a while after the last letter. Whatever was asked about an older text is given up, also
// where that text was sent before its tokens were counted.
function countDraft(text, counted) {
  clearTimeout(timer);
  asking?.abort();
  draft = {text, tokens: text ? draft.tokens : 0};
  if (!text) return;
  timer = setTimeout(async () => {
    asking = new AbortController();
    const {signal} = asking;
    try {
      const tokens = await api.countTokens(text, models.current()?.id, signal);
      if (signal.aborted) return;
      draft = {text, tokens};
      counted();
    } catch {
      // The answer to what is sent will say what is wrong.
    }
  }, ASK_MS);
}

function words(used, room) {
  const share = `${number(used)} of ${number(room)} tokens`;
  if (used >= room) return `${share}: too long, start a new chat or write less`;
  return used > room * NEARLY ? `${share}: nearly full` : share;
}

export function show(conversation, written) {
  const text = written.trim(), room = models.context();
  // A model that is not loaded yet is not loaded for this.
  if (room && text !== draft.text) countDraft(text, () => show(conversation, written));
  const last = path(conversation).findLast(({used}) => used > 0)?.used ?? 0;
  const used = last + draft.tokens;
  find("context").hidden = room === 0 || used === 0;
  if (find("context").hidden) return;
  const meter = find("context-meter"), said = words(used, room);
  Object.assign(meter, {max: room, high: room * NEARLY, low: room * NEARLY, optimum: 0,
                        value: used});
  meter.setAttribute("aria-valuetext", said);
  find("context-text").textContent = said;
}
