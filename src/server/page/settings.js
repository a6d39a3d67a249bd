// SPDX-License-Identifier: Apache-2.0
// The two dialogs: the settings of a request, and the key of the server.
import {announce, el, find} from "./dom.js";
import * as store from "./store.js";

const dialog = find("settings"), keyDialog = find("key");

function field({name, label, min, max, whole, help}) {
  return el("div", {class: "field"},
    el("label", {for: name}, label),
    el("input", {id: name, name, type: "number", inputmode: whole ? "numeric" : "decimal", min, max,
                 step: whole ? 1 : "any", placeholder: "server's choice",
                 "aria-describedby": `${name}-help`}),
    el("p", {class: "help", id: `${name}-help`}, help));
}

function fill(settings) {
  find("system").value = settings.system ?? "";
  for (const {name} of store.FIELDS) find(name).value = settings[name] ?? "";
}

// The browser has checked the numbers before it submits.
function save() {
  const settings = {};
  if (find("system").value.trim()) settings.system = find("system").value.trim();
  for (const {name} of store.FIELDS) {
    if (find(name).value !== "") settings[name] = find(name).valueAsNumber;
  }
  announce(store.writeSettings(settings) ? "The settings are saved."
    : "This browser does not keep the settings.");
}

export function start() {
  find("fields").append(...store.FIELDS.map(field));
  find("open-settings").addEventListener("click", () => {
    fill(store.readSettings());
    dialog.showModal();
  });
  find("settings-form").addEventListener("submit", save);
  find("settings-reset").addEventListener("click", () => {
    fill({});
    find("system").focus();
  });
  find("settings-cancel").addEventListener("click", () => dialog.close());
  find("key-cancel").addEventListener("click", () => keyDialog.close());
}

let asking = null;

/** Shows the dialog once, whoever asks; resolves to whether a key was given. */
export function askForKey(why) {
  asking ??= new Promise((resolve) => {
    let given = false;
    const submit = () => {
      store.writeForTab("key", find("key-text").value.trim());
      given = true;
    };
    find("key-why").textContent = `${why} It is kept until this tab is closed.`;
    find("key-text").value = "";
    find("key-form").addEventListener("submit", submit, {once: true});
    keyDialog.addEventListener("close", () => {
      find("key-form").removeEventListener("submit", submit);
      asking = null;
      resolve(given);
    }, {once: true});
    keyDialog.showModal();
  });
  return asking;
}
