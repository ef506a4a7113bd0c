/* The page of the GraphQL port: the editor alone, with a place for a token. */

import { h } from "../lib/dom.js";
import { editor } from "./editor.js";

const token = h("input", { id: "token", type: "password", autocomplete: "off" });
const headers = () => ({ "Content-Type": "application/json", Accept: "application/json", ...(token.value ? { Authorization: `Bearer ${token.value}` } : {}) });
const built = editor(document.getElementById("main"), { address: "/graphql", headers, extra: h("label", "Token, where the node asks for one", token) });
token.addEventListener("change", built.load);
