// SPDX-License-Identifier: Apache-2.0
// The page: which view is shown, and the keys that work everywhere.
import * as answers from "./answer.js";
import * as chat from "./chat.js";
import * as conversations from "./conversations.js";
import * as device from "./device.js";
import {find} from "./dom.js";
import * as history from "./history.js";
import * as models from "./models.js";
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

function answered() {
  if (!find("view-device").hidden) device.refresh();
  if (models.several() || !models.current()) models.refresh();
}

settings.start();
device.start();
await conversations.load(answers.isRunning);
chat.start(answered);
history.start();
addEventListener("hashchange", showView);
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !document.querySelector("dialog[open], :popover-open")) {
    chat.stop();
  }
});
showView();
await models.start(chat.showModels);
