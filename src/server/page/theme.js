// SPDX-License-Identifier: Apache-2.0
// Light or dark, before the first paint: the reader's choice, else the system's. Loaded as a plain
// script in the head, so that no page flashes in the wrong colours.
"use strict";
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");

  function chosen() {
    try {
      return localStorage.getItem("stint.theme");
    } catch {
      return null; // storage is forbidden: the system's choice holds
    }
  }

  function isDark() {
    return chosen() ? chosen() === "dark" : system.matches;
  }

  function apply() {
    const dark = isDark();
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    document.querySelector("meta[name=theme-color]").content = dark ? "#161615" : "#faf9f7";
    const button = document.getElementById("theme");
    if (button) button.setAttribute("aria-pressed", String(dark));
  }

  // What the system wants anyway is not kept: from then on the page follows the system again.
  function toggle() {
    const wanted = isDark() ? "light" : "dark";
    try {
      if (wanted === (system.matches ? "dark" : "light")) localStorage.removeItem("stint.theme");
      else localStorage.setItem("stint.theme", wanted);
    } catch {
      document.documentElement.dataset.theme = wanted;
      return;
    }
    apply();
  }

  apply();
  system.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme").addEventListener("click", toggle);
  });
})();
