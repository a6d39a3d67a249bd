// SPDX-License-Identifier: Apache-2.0
// What the browser keeps: the conversation and the settings for good, the key for the tab's life.
// Storage may be forbidden, full, or hold what an older page wrote: then the page starts empty.
const CONVERSATION = "stint.conversation", SETTINGS = "stint.settings", KEY = "stint.key";

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

function valid(message) {
  return (message?.role === "user" || message?.role === "assistant") &&
    typeof message.text === "string" && typeof (message.reasoning ?? "") === "string";
}

/** Messages: {role, text} and, of the assistant, {reasoning, state, error, tokens, seconds, first}.
 *  Reasoning is shown and never sent back. */
export function readConversation() {
  const kept = read(CONVERSATION);
  const messages = Array.isArray(kept) ? kept.filter(valid) : [];
  // The page was left or reloaded while this one came.
  for (const message of messages) if (message.state === "streaming") message.state = "stopped";
  return messages;
}

export const writeConversation = (messages) => write(CONVERSATION, messages);

export function readSettings() {
  const kept = read(SETTINGS) ?? {}, settings = {};
  if (typeof kept.system === "string") settings.system = kept.system;
  for (const {name} of FIELDS) if (Number.isFinite(kept[name])) settings[name] = kept[name];
  return settings;
}

export const writeSettings = (settings) => write(SETTINGS, settings);

export function readKey() {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

export function writeKey(key) {
  try {
    sessionStorage.setItem(KEY, key);
  } catch {
    return false;
  }
  return true;
}
