// SPDX-License-Identifier: Apache-2.0
// The list of conversations: at the side, or where the page is narrow in a drawer.
import * as answers from "./answer.js";
import * as chat from "./chat.js";
import {matches, titleOf} from "./conversation.js";
import * as conversations from "./conversations.js";
import {announce, count, el, find, iconButton, setChildren} from "./dom.js";
import * as files from "./files.js";

const narrow = matchMedia("(width <= 900px)");
const today = new Intl.DateTimeFormat("en", {timeStyle: "short"});
const before = new Intl.DateTimeFormat("en", {dateStyle: "medium"});
const menu = find("conversation-menu"), search = find("search");
let rows = new Map(); // by what they say
let ofMenu = null; // the conversation whose menu is open

function when({changed}) {
  const date = new Date(changed);
  return (date.toDateString() === new Date().toDateString() ? today : before).format(date);
}

// ---- the list

function openMenu(conversation, button) {
  ofMenu = conversation;
  menu.showPopover();
  const {bottom, right} = button.getBoundingClientRect();
  const {width, height} = menu.getBoundingClientRect();
  menu.style.left = `${Math.max(right - width, 8)}px`;
  menu.style.top = `${Math.min(bottom + 4, innerHeight - height - 8)}px`;
  menu.querySelector("button").focus();
}

function row(conversation, {title, state, current}) {
  const more = iconButton("more", `More for ${title}`, () => openMenu(conversation, more));
  return el("li", {class: current ? "current" : "", "data-id": conversation.id},
    el("button", {type: "button", class: "open", "aria-current": current && "true",
                  click: () => openConversation(conversation)},
      el("span", {class: "title"}, title), el("span", {class: "quiet"}, state)),
    more);
}

// A row that says the same as before stays as it is: a press or the focus on it must not be lost.
function rowOf(conversation) {
  const said = {title: titleOf(conversation), current: conversation === chat.current(),
                state: answers.isRunning(conversation) ? "is being answered" : when(conversation)};
  const key = JSON.stringify([conversation.id, said]), known = rows.get(key);
  return [key, known ?? row(conversation, said)];
}

function draw() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = conversations.list();
  const found = words.length ? all.filter((one) => matches(one, words)) : all;
  const renaming = find("conversations").querySelector("input");
  if (renaming) return; // it draws again when that ends
  const focused = document.activeElement?.closest?.("#conversations li")?.dataset.id;
  rows = new Map(found.map(rowOf));
  setChildren(find("conversations"), [...rows.values()]);
  if (focused) itemOf(focused)?.querySelector(".open").focus();
  find("history-note").textContent = words.length ? `${count(found.length, "conversation")} found.`
    : all.length ? "" : "What you ask is kept here, in this browser.";
  find("export-all").disabled = all.length === 0;
}

const itemOf = (id) => [...find("conversations").children].find(({dataset}) => dataset.id === id);

function openConversation(conversation) {
  find("drawer").close();
  location.hash = "#chat";
  chat.show(conversation);
  announce(`${titleOf(conversation)} is open.`);
}

// ---- what can be done with one

function rename(conversation) {
  const item = itemOf(conversation.id);
  const field = el("input", {type: "text", "aria-label": "New title", maxlength: 200});
  field.value = titleOf(conversation);
  let ended = false; // taking the field away makes it lose the focus, which ends it again
  const end = (title) => {
    if (ended) return;
    ended = true;
    item.remove();
    rows.clear();
    if (title) conversation.title = title;
    if (title) conversations.keep(conversation);
    draw();
    itemOf(conversation.id)?.querySelector(".open").focus();
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") end(field.value.trim());
    if (event.key === "Escape") end("");
    if (event.key === "Enter" || event.key === "Escape") event.preventDefault();
    event.stopPropagation();
  });
  field.addEventListener("blur", () => end(field.value.trim()));
  item.replaceChildren(field);
  field.select();
}

function discard(conversation) {
  answers.stop(conversation);
  const bringBack = conversations.discard(conversation);
  if (conversation === chat.current()) chat.show();
  const bar = find("undo"), title = titleOf(conversation);
  const close = () => {
    bar.replaceChildren();
    search.focus();
  };
  bar.replaceChildren(el("span", {}, `“${title}” is deleted.`),
    el("button", {type: "button", class: "plain", click: () => {
      bringBack();
      close();
      announce(`${title} is back.`);
    }}, "Undo"),
    iconButton("close", "Dismiss", close));
  announce(`${title} is deleted. Undo brings it back.`);
  bar.querySelector("button").focus();
}

const ACTIONS = {
  rename, discard, "export-text": files.exportText, "export-json": files.exportJson,
};

// ---- side or drawer

function place() {
  const history = find("history");
  find("drawer").close();
  (narrow.matches ? find("drawer") : find("side")).append(history);
  find("side").hidden = narrow.matches;
  find("open-history").setAttribute("aria-expanded", String(!narrow.matches));
}

function toggle() {
  if (narrow.matches) {
    find("drawer").showModal();
    return;
  }
  const side = find("side");
  side.hidden = !side.hidden;
  find("open-history").setAttribute("aria-expanded", String(!side.hidden));
}

async function takeFile() {
  const [file] = find("import-file").files;
  if (!file) return;
  const taken = await files.importFile(file);
  find("import-file").value = "";
  find("history-note").textContent = taken.error ?? `${count(taken.n, "conversation")} taken over.`;
}

export function start() {
  for (const [name, act] of Object.entries(ACTIONS)) {
    find(`menu-${name}`).addEventListener("click", () => {
      menu.hidePopover();
      act(ofMenu);
    });
  }
  search.addEventListener("input", draw);
  find("open-history").addEventListener("click", toggle);
  find("close-drawer").addEventListener("click", () => find("drawer").close());
  find("drawer").addEventListener("click", ({target}) => {
    if (target === find("drawer")) target.close(); // beside the drawer
  });
  find("export-all").addEventListener("click", () => files.exportJson(...conversations.list()));
  find("import").addEventListener("click", () => find("import-file").click());
  find("import-file").addEventListener("change", takeFile);
  narrow.addEventListener("change", place);
  conversations.onChange(draw);
  chat.onShow(draw);
  place();
  draw();
}
