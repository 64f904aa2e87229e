"use strict";
// Beside textual-serve's script, which shows the terminal: keys go to it without a click, and a session begins anew.
addEventListener("load", () => {
  const focus = () => document.querySelector(".xterm-helper-textarea")?.focus();
  new MutationObserver(focus).observe(document.querySelector("#terminal"), { attributeFilter: ["class"] });
  document.querySelector("#again").addEventListener("click", () => location.reload());
});
