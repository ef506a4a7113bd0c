/* Schema explorer: loads the schema once and lists types and fields. */

import { h, put } from "../lib/dom.js";
import { named, written } from "./document.js";

const TYPE = "kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } }";
export const INTROSPECTION = `query Schema { __schema { queryType { name } mutationType { name } types { kind name description
  fields(includeDeprecated: true) { name description args { name description defaultValue type { ${TYPE} } } type { ${TYPE} } }
  inputFields { name description type { ${TYPE} } } enumValues { name description } } } }`;

/** Return the schema of an introspection answer: {types: Map, roots: {query, mutation}}. */
export function schemaOf(answer) {
  const types = new Map(answer.types.filter((type) => !type.name.startsWith("__")).map((type) => [type.name, type]));
  return { types, roots: { query: answer.queryType?.name, mutation: answer.mutationType?.name } };
}

/** Return a panel that shows the schema. `insert` adds a field to the document. */
export function explorer(insert) {
  const trail = h("nav", { id: "trail", "aria-label": "Trail" }), list = h("div", { id: "schema" });
  const search = h("input", { id: "search", type: "search", placeholder: "type or field", "aria-label": "Find a type or field", oninput: () => find() });
  let schema = null;
  const link = (text, act, kind) => h(`button.link.${kind}`, { type: "button", onclick: act }, text);
  const typeLink = (type) => link(written(type), () => open(named(type)), "type");
  const title = (field, owner) => h("dt",
    owner ? [link(owner, () => open(owner), "type"), "."] : null, link(field.name, () => insert(`${field.name} `), "field"),
    field.args?.length ? ["(", field.args.map((argument, at) => [at ? ", " : "", argument.name, ": ", typeLink(argument.type)]), ")"] : null,
    field.type ? [": ", typeLink(field.type)] : null);
  const entry = (head, text) => [head, h("dd", text || "")];

  function open(name) {
    const type = schema.types.get(name), roots = Object.values(schema.roots).filter(Boolean);
    put(trail, link("all types", () => open(null), "type"), type ? ` / ${name}` : null);
    if (type) put(list, type.description ? h("p", type.description) : null, h("dl", [...(type.fields || []), ...(type.inputFields || []), ...(type.enumValues || [])].flatMap((field) => entry(title(field), field.description))));
    else put(list, h("dl", [...roots, ...[...schema.types.keys()].filter((one) => !roots.includes(one)).sort()].flatMap((one) => entry(h("dt", link(one, () => open(one), "type")), schema.types.get(one).description))));
    list.scrollTop = 0;
  }

  function find() {
    const wanted = search.value.trim().toLowerCase();
    if (!schema || !wanted) return schema && open(null);
    const found = [...schema.types.values()].flatMap((type) => [...(type.fields || []), ...(type.inputFields || [])].filter((field) => `${type.name}.${field.name}`.toLowerCase().includes(wanted)).map((field) => [type, field]));
    put(list, h("dl", found.slice(0, 200).flatMap(([type, field]) => entry(title(field, type.name), field.description))));
    return null;
  }

  return {
    element: h("aside.schema", { "aria-label": "Schema" }, h("label", { for: "search" }, "Schema"), search, trail, list),
    show(loaded) {
      schema = loaded;
      open(null);
    },
    fail: (message) => put(list, h("p.soft", message)),
  };
}
