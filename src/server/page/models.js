// SPDX-License-Identifier: Apache-2.0
// Which models the server has, which of them answers, and whether it reasons first.
import * as api from "./api.js";
import {announce, el, find, number} from "./dom.js";
import {askForKey} from "./settings.js";
import * as store from "./store.js";
import {machineName} from "./words.js";

let list = [];
let chosen = "";
let whenChosen = () => {};

/** The model that answers, or null as long as the server has not said. */
export const current = () => list.find(({id}) => id === chosen) ?? null;
export const several = () => list.length > 1;

/** The tokens that a conversation may have; 0: the server has not said. */
export const context = () => current()?.stint?.context ?? 0;

/** Chooses a model, if the server has it. */
export function choose(name) {
  if (!name || name === chosen || (list.length && !list.some(({id}) => id === name))) return;
  chosen = name;
  if (list.length) show();
}

function details({stint = {}}) {
  return [stint.context ? `${number(stint.context)} tokens of context` : "", machineName(stint)]
    .filter(Boolean).join(" · ");
}

function picker() {
  const choice = el("select", {id: "model-choice", "aria-label": "Model"},
    ...list.map(({id}) => el("option", {value: id, selected: id === chosen}, id)));
  choice.addEventListener("change", () => {
    store.writeChoice("model", choice.value);
    choose(choice.value);
    announce(`${chosen} answers from now on.`);
  });
  return choice;
}

function show() {
  const model = current(), line = find("model");
  // What is chosen by the keyboard keeps the focus.
  const choice = find("model-choice");
  if (choice && choice.length === list.length) choice.value = chosen;
  const name = !several() ? el("strong", {}, model.id)
    : choice?.length === list.length ? choice : picker();
  line.replaceChildren(name, el("span", {}, details(model)));
  line.title = [details(model), model.stint?.architecture, model.stint?.exec]
    .filter(Boolean).join(", "); // a narrow page cuts the line
  document.title = `${model.id} · stint`;
  find("thinking-field").hidden = !model.stint?.reasoning;
  whenChosen();
}

/** Asks the server; also after answers, as it loads models when they are asked. */
export async function refresh() {
  const line = find("model");
  try {
    list = await api.models();
    if (!current()) chosen = store.readChoice("model");
    if (!current()) chosen = list[0].id;
    show();
  } catch (error) {
    line.replaceChildren(el("span", {}, error.status === 401 ? "A key is needed" : "No answer"));
    if (error.status !== 401) line.title = error.message;
    else if (await askForKey(error.message)) await refresh();
  }
}

/** What of a request says which model answers, and how. */
export async function fields() {
  if (!current()) await refresh();
  if (!current()) throw new api.ApiError("The server cannot be reached. Is it still running?");
  const thinking = find("thinking").value;
  if (!current().stint?.reasoning || thinking === "auto") return {model: chosen};
  return {model: chosen, chat_template_kwargs: {enable_thinking: thinking === "on"}};
}

export function start(chosenNow) {
  whenChosen = chosenNow;
  const thinking = find("thinking"), kept = store.readChoice("thinking");
  if ([...thinking.options].some(({value}) => value === kept)) thinking.value = kept;
  thinking.addEventListener("change", () => store.writeChoice("thinking", thinking.value));
  return refresh();
}
