"use strict";
// Beside textual-serve's script, which shows the terminal: keys go to it without a click, and a session begins anew.
addEventListener("load", () => {
  const focus = () => document.querySelector(".xterm-helper-textarea")?.focus();
  new MutationObserver(focus).observe(document.querySelector("#terminal"), { attributeFilter: ["class"] });
  document.querySelector("#again").addEventListener("click", () => location.reload());
});

// xterm.js marks the two ends of a pasted text with escape sequences, and leaves those that the text itself holds.
// An end mark inside the text would turn what follows it into keys, so ESC and C1 characters are removed.
const PASTE = /^\x1b\[200~([^]*)\x1b\[201~$/;
const sendAsItIs = WebSocket.prototype.send;
WebSocket.prototype.send = function (message) {
  if (typeof message === "string" && message.startsWith('["stdin",')) {
    const [kind, typed] = JSON.parse(message);
    const pasted = PASTE.exec(typed);
    if (pasted) {
      const text = pasted[1].replace(/[\x1b\x80-\x9f]/g, "");
      message = JSON.stringify([kind, `\x1b[200~${text}\x1b[201~`]);
    }
  }
  sendAsItIs.call(this, message);
};
