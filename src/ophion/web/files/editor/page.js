/* GraphQL port: the editor with a token field. */

import { h } from "../lib/dom.js";
import { editor } from "./editor.js";

const token = h("input", { id: "token", type: "password", autocomplete: "off" });
const headers = () => ({ "Content-Type": "application/json", Accept: "application/json", ...(token.value ? { Authorization: `Bearer ${token.value}` } : {}) });
const built = editor(document.getElementById("main"), { address: "/graphql", headers, extra: h("label", "Token, if the node requires one", token) });
token.addEventListener("change", built.load);
