/* Router: the URL fragment is a path. Each view is a module that is loaded on demand. */

import { h, put, say } from "./lib/dom.js";
import { begin, live, onChange } from "./lib/live.js";
import { hasService, network, own, readConsensus, readNetwork } from "./lib/nodes.js";
import { askForToken } from "./lib/signin.js";
import { acceptAbis } from "./lib/abi_store.js";
import { destination } from "./lib/search.js";
import { events, token } from "./lib/rpc.js";

const VIEWS = {
  "": ["Overview", () => import("./views/overview.js")],
  blocks: ["Blocks", () => import("./views/blocks.js")],
  block: ["Block", () => import("./views/block.js")],
  tx: ["Transaction", () => import("./views/transaction.js")],
  address: ["Address", () => import("./views/address.js")],
  abis: ["Contracts", () => import("./views/contracts.js")],
  search: ["Search", () => import("./views/found.js")],
  consensus: ["Consensus", () => import("./views/consensus.js")],
  playground: ["Playground", () => import("./views/playground.js")],
  graphql: ["GraphQL", () => import("./views/graphql.js")],
  query: ["SQL", () => import("./views/query.js")],
};
const TABS = { blocks: "blocks", block: "blocks", tx: "blocks", address: "blocks", abis: "blocks", search: "blocks", graphql: "playground", query: "playground" };
const STATES = { starting: "connecting", live: "live", polling: "polling", silent: "no answer" };

const byId = (id) => document.getElementById(id);
const main = byId("main");
let leave = null, turn = 0;

/* --- views ------------------------------------------------------------------------------------- */

async function route(event) {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  if (path === "main") return;
  const [name, ...rest] = path.split("/").map(decoded), mine = ++turn;
  const [title, load] = VIEWS[name] || VIEWS[""];
  leave?.();
  leave = null;
  for (const link of byId("views").children) {
    const target = link.getAttribute("href").slice(2);
    target === (TABS[name] ?? (VIEWS[name] ? name : "")) ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  }
  const root = h("div.view", { "aria-busy": "true" });
  put(main, root);
  document.title = `${title} · ${network.name}`;
  if (event) {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  let done = null;
  try {
    const view = await load();
    done = await view.show(root, rest, new URLSearchParams(query));
  } catch (error) {
    put(root, h("section.card.problem", { role: "alert" }, h("h1", "This view failed"), h("p", error.message),
      h("p", h("button", { type: "button", onclick: () => route() }, "Try again"))));
    if (!["RpcError", "NoAnswer"].includes(error.constructor.name)) console.error(error);
  }
  root.removeAttribute("aria-busy");
  mine === turn ? (leave = done) : done?.();
}

/** Decode a path segment. Invalid escapes stay unchanged. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/* --- the frame --------------------------------------------------------------------------------- */

function frame() {
  say(byId("network"), network.name);
  const badge = byId("live");
  badge.dataset.state = live.state;
  say(badge, STATES[live.state]);
  badge.title = live.reason;
  byId("token").hidden = !token.wanted && !token.value;
  say(byId("foot"), network.chainId ? `Chain id ${BigInt(network.chainId)}${network.consensus ? ` · ${network.consensus.toUpperCase()}` : ""}` : "");
}

const THEMES = ["auto", "light", "dark"], SIGNS = { auto: "◐", light: "☀", dark: "☾" };

function dress(theme) {
  theme === "auto" ? delete document.documentElement.dataset.theme : (document.documentElement.dataset.theme = theme);
  const button = byId("theme");
  say(button, SIGNS[theme]);
  button.setAttribute("aria-label", `Colours: ${theme}`);
  button.title = `Colours: ${theme}`;
  button.onclick = () => {
    const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    localStorage.setItem("ophion-theme", next);
    dress(next);
  };
}

/** Keyboard shortcuts: `/` searches; `g` followed by o, e, c or p goes to a view. */
let goes = false;
function key(event) {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const target = goes && { o: "#/", e: "#/blocks", c: "#/consensus", p: "#/playground" }[event.key];
  goes = event.key === "g";
  if (event.key === "/") {
    event.preventDefault();
    byId("wanted").focus();
  } else if (target) location.hash = target;
}

async function search(event) {
  event.preventDefault();
  const text = byId("wanted").value.trim();
  if (!text) return;
  location.hash = await destination(text);
  byId("wanted").value = "";
}

async function start() {
  dress(localStorage.getItem("ophion-theme") || "auto");
  byId("finder").addEventListener("submit", search);
  byId("token").addEventListener("click", () => askForToken());
  addEventListener("keydown", key);
  addEventListener("hashchange", route);
  acceptAbis(() => route());
  events.addEventListener("unauthorized", () => { frame(); askForToken(true); });
  events.addEventListener("token", async () => { await know(); frame(); route(); });
  onChange(frame);
  await know();
  if (token.wanted && !token.value) askForToken(true);
  frame();
  begin(hasService("jsonws") && !network.socketToken && !token.wanted);
  route();
}

async function know() {
  try {
    await readNetwork();
    if (own()?.up !== false && (!token.wanted || token.value)) await readConsensus();
  } catch { /* ignore the error: each view reports the data that it cannot load */ }
}

start();
