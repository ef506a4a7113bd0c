/* Functions that make DOM elements. Text from a chain is never parsed as HTML. */

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

function split(tag) {
  const [name, ...classes] = tag.split(".");
  return [name, classes.join(" ")];
}

/** Make an element: h("a.quiet", {href}, "text", other, [more]). Attributes are optional. */
export function h(tag, attributes, ...children) {
  const [name, classes] = split(tag);
  const element = document.createElement(name);
  if (classes) element.className = classes;
  return isPlain(attributes) ? fill(element, attributes, children) : fill(element, null, [attributes, ...children]);
}

/** Make an SVG element in the same way. */
export function s(tag, attributes, ...children) {
  const [name, classes] = split(tag);
  const element = document.createElementNS(SVG, name);
  if (classes) element.setAttribute("class", classes);
  return fill(element, attributes, children);
}

function isPlain(value) {
  return value !== null && typeof value === "object" && !(value instanceof Node) && !Array.isArray(value);
}

export function put(element, ...children) {
  element.replaceChildren(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Set a text only if it changed, to avoid redraws. */
export function say(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/** Make a table. Rows are arrays of cells; a cell is children or [children, class]. */
export function table(caption, heads, rows, empty) {
  const cell = (one) => (Array.isArray(one) && typeof one[1] === "string" && one.length === 2 ? h("td." + one[1], one[0]) : h("td", one));
  return h("div.scroll", { tabindex: "0", role: "region", "aria-label": caption },
    h("table", h("caption.hidden", caption),
      h("thead", h("tr", heads.map((head) => (Array.isArray(head) ? h("th." + head[1], { scope: "col" }, head[0]) : h("th", { scope: "col" }, head))))),
      h("tbody", rows.length ? rows.map((row) => h("tr", row.map(cell))) : h("tr", h("td.empty", { colspan: String(heads.length) }, empty || "Nothing here yet.")))));
}

/** Make a list of names and values. */
export function facts(pairs) {
  return h("dl.facts", pairs.filter(Boolean).map(([name, ...value]) => h("div", h("dt", name), h("dd", ...value))));
}

export function card(title, ...children) {
  return h("section.card", h("header", h("h2", title)), ...children);
}

export function copyable(text, shown) {
  const button = h("button.copy", { type: "button", "aria-label": "Copy", title: "Copy", onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.classList.add("done");
      setTimeout(() => button.classList.remove("done"), 900);
    } catch { /* the browser denies clipboard access: the user can select the text */ }
  } });
  return h("span.copyable", shown || h("code", text), button);
}
