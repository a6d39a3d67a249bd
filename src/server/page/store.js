// SPDX-License-Identifier: Apache-2.0
// What the browser keeps beside conversations (archive.js): settings and choices for good, the key
// and which conversation is open for the tab's life. Storage may be forbidden, full, or hold what
// an older page wrote.
const CONVERSATION = "stint.conversation", SETTINGS = "stint.settings";

/** The numbers of a request that the reader can set; each is sent only where it is set. */
export const FIELDS = [
  {name: "temperature", label: "Temperature", min: 0, max: 2,
   help: "0 takes the likeliest token; more is bolder"},
  {name: "top_p", label: "Top p", min: 0, max: 1, help: "Only the likeliest tokens that sum to it"},
  {name: "max_tokens", label: "Most tokens", min: 1, whole: true, help: "Where an answer ends"},
  {name: "seed", label: "Seed", min: 0, max: Number.MAX_SAFE_INTEGER, whole: true,
   help: "The same seed, the same answer"},
  {name: "presence_penalty", label: "Presence penalty", min: -2, max: 2,
   help: "Above 0: fewer words that came before"},
  {name: "frequency_penalty", label: "Frequency penalty", min: -2, max: 2,
   help: "Above 0: less of what came often"},
];

function read(key) {
  try {
    return JSON.parse(localStorage.getItem(key));
  } catch {
    return null;
  }
}

function write(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

/** What pages kept before they kept several conversations: a list of messages; [] if nothing. */
export function oldConversation() {
  const kept = read(CONVERSATION);
  return Array.isArray(kept) ? kept : [];
}

export const dropOldConversation = () => localStorage.removeItem(CONVERSATION);

export function readSettings() {
  const kept = read(SETTINGS) ?? {}, settings = {};
  if (typeof kept.system === "string") settings.system = kept.system;
  for (const {name} of FIELDS) if (Number.isFinite(kept[name])) settings[name] = kept[name];
  return settings;
}

export const writeSettings = (settings) => write(SETTINGS, settings);

/** Which model the reader chose last, and whether it shall reason first: "auto", "on", "off". */
export const readChoice = (name) => `${read(`stint.${name}`) ?? ""}`;
export const writeChoice = (name, value) => write(`stint.${name}`, value);

/** A text that is kept until the tab is closed: "key", or the conversation that is "open". */
export function readForTab(name) {
  try {
    return sessionStorage.getItem(`stint.${name}`) ?? "";
  } catch {
    return "";
  }
}

export function writeForTab(name, value) {
  try {
    sessionStorage.setItem(`stint.${name}`, value);
  } catch {
    return false;
  }
  return true;
}
