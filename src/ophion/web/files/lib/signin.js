/* The token for a node with authentication: pasted or from a login. Stored until the tab is closed. */

import { h, say } from "./dom.js";
import { login, token } from "./rpc.js";

let dialog = null, refused = false;

/** Show the token dialog. After a refused request (`isNeeded`), show it only once. */
export function askForToken(isNeeded = false) {
  if (isNeeded && (refused || dialog?.open)) return;
  dialog?.remove();
  const problem = h("p.bad", { role: "alert" });
  const field = (label, attributes) => h("label", label, h("input", { autocomplete: "off", ...attributes }));
  const name = field("Name", { name: "username", autocomplete: "username" }), password = field("Password", { name: "password", type: "password", autocomplete: "current-password" });
  const given = field("Token", { name: "token", type: "password" });
  const value = (label) => label.querySelector("input").value.trim();
  const submit = async (event) => {
    event.preventDefault();
    try {
      if (value(given)) token.value = value(given);
      else await login(value(name), value(password));
      dialog.close("given");
    } catch (error) {
      say(problem, error.message);
    }
  };
  dialog = h("dialog", { "aria-labelledby": "signin-title" },
    h("form", { method: "dialog", onsubmit: submit },
      h("h2", { id: "signin-title" }, "This node asks for a token"),
      h("p.soft", "Log in with a user of the credentials file, or paste a token. It is stored in this tab only."),
      name, password, h("p.or", "or"), given, problem,
      h("div.row", h("button.main", { type: "submit" }, "Go on"), h("button", { type: "button", onclick: () => dialog.close() }, "Not now"),
        token.value ? h("button", { type: "button", onclick: () => { token.value = ""; dialog.close(); } }, "Forget it") : null)));
  dialog.addEventListener("close", () => { refused = dialog.returnValue !== "given"; });
  document.body.append(dialog);
  dialog.showModal();
}
