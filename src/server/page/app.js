// SPDX-License-Identifier: Apache-2.0
// The page: which view is shown, which model answers, and the keys that work everywhere.
import * as api from "./api.js";
import * as chat from "./chat.js";
import * as device from "./device.js";
import {el, find, number} from "./dom.js";
import * as settings from "./settings.js";

const VIEWS = ["chat", "device"];

// Any other fragment, such as that of the link over the header, leaves the view as it is.
function showView() {
  const wanted = location.hash.slice(1) || "chat";
  if (!VIEWS.includes(wanted)) return;
  for (const view of VIEWS) {
    const shown = view === wanted;
    find(`view-${view}`).hidden = !shown;
    if (shown) find(`to-${view}`).setAttribute("aria-current", "page");
    else find(`to-${view}`).removeAttribute("aria-current");
  }
  if (wanted === "device") device.refresh();
}

async function showModel() {
  const line = find("model");
  try {
    const model = await api.model();
    const {context, device: runsOn} = model.stint ?? {};
    line.replaceChildren(el("strong", {}, model.id),
      el("span", {}, [context ? `${number(context)} tokens of context` : "", runsOn]
        .filter(Boolean).join(" · ")));
    line.title = [model.stint?.architecture, model.stint?.exec].filter(Boolean).join(", ");
    document.title = `${model.id} · stint`;
  } catch (error) {
    line.replaceChildren(el("span", {}, error.status === 401 ? "A key is needed" : "No answer"));
    if (error.status !== 401) line.title = error.message;
    else if (await settings.askForKey(error.message)) await showModel();
  }
}

settings.start();
device.start();
chat.start(() => {
  if (!find("view-device").hidden) device.refresh();
  if (!document.querySelector("#model strong")) showModel();
});
addEventListener("hashchange", showView);
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !document.querySelector("dialog[open]")) chat.stop();
});
showView();
showModel();
