/* Shown when a search has no result: lists what can be searched for. */

import { card, h, put } from "../lib/dom.js";

export function show(root, [text]) {
  put(root, h("h1", "Nothing found"), card("What you can search for",
    h("p", "No result for ", h("code", text || ""), "."),
    h("ul.plain",
      h("li", "a block by number or hash, or ", h("code", "latest")),
      h("li", "a transaction by hash, also a pending one"),
      h("li", "an address, or the name of a node or contract"),
      h("li", "a method of JSON-RPC, such as ", h("code", "eth_getBalance")))));
}
