/* GraphQL tab of the playground. */

import { h, put } from "../lib/dom.js";
import { hasService } from "../lib/nodes.js";
import { headers } from "../lib/rpc.js";
import { editor } from "../editor/editor.js";
import { switcher } from "./playground.js";

export async function show(root) {
  const place = h("div");
  put(root, h("div.title.spread", h("h1", "Playground"), switcher("graphql")), place);
  if (!hasService("graphql")) return put(place, h("section.card", h("p", "GraphQL is disabled on this node. Enable it with --graphql-http-enabled."))) && null;
  return editor(place, { address: "graphql", headers });
}
