// SPDX-License-Identifier: Apache-2.0
// What did not have to be done for the last request: by the cache, the precision schedule, drafts,
// and by two processors that worked at the same time.
import {count, el, number, percent, seconds} from "./dom.js";

const INT8_BITS = 8, ENOUGH = 64;

// The time of what was reused is that of what was read, token for token, if that was enough to
// tell.
function cache({prompt_tokens: prompt, reused_tokens: reused, prefill_seconds: time}) {
  if (!reused) return [null, "No part of the prompt was still in the slot."];
  const fresh = prompt - reused, spared = fresh >= ENOUGH ? time / fresh * reused : 0;
  return [percent(reused / prompt), `${number(reused)} of ${number(prompt)} tokens of the prompt ` +
    `were still in the slot${spared ? `, about ${seconds(spared)} of reading` : ""}.`];
}

function schedule({average_bits: bits}) {
  if (bits === 0) return [null, "The weights have one precision, that of the file."];
  if (bits >= INT8_BITS) return [null, "Each token was made with all 8 bits of a weight."];
  return [percent(1 - bits / INT8_BITS),
    `${number(bits)} bits of each weight were read for a token, in place of 8.`];
}

function drafts({drafted_tokens: drafted, accepted_tokens: accepted, generated_tokens: made,
                 self_drafted_tokens: own, self_accepted_tokens: right}) {
  if (!drafted) return [null, "No token was guessed beforehand."];
  const fewer = own ? ` Of these, fewer bits guessed ${number(right)} of ${number(own)}.` : "";
  return [made > 0 ? percent(accepted / made) : "–",
    `Guessed right: ${number(accepted)} of ${count(drafted, "token")}, each a step less.${fewer}`];
}

function together({prefill}) {
  const {npu_seconds: one = 0, cpu_seconds: other = 0, seconds: took = 0} = prefill ?? {};
  const spared = one + other - took;
  if (!(spared > 0) || !(took > 0)) return [null, "One processor worked at a time."];
  return [percent(spared / (one + other)),
    `Two processors worked at the same time for ${seconds(spared)} of the prompt.`];
}

const KINDS = [["Cache", cache], ["Fewer bits", schedule], ["Drafts", drafts],
               ["Side by side", together]];

/** The card's content for the answer of /stint/last. */
export function saved(last) {
  return el("dl", {class: "saved"}, ...KINDS.map(([label, say]) => {
    const [share, note] = say(last);
    return el("div", {}, el("dt", {}, label),
      el("dd", {}, el("strong", {class: share ? "" : "quiet"}, share ?? "nothing"),
        el("p", {}, note)));
  }));
}
