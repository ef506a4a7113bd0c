/* JSON-RPC over HTTP to the page's own origin. Concurrent calls are sent as one batch. */

const BATCH = 100, TIMEOUT_MS = 30000;

export class RpcError extends Error {
  constructor(error) {
    super(error.message);
    this.code = error.code;
    this.data = error.data;
  }
  /** Whether the method is disabled or unknown, or belongs to another consensus protocol. */
  get isAbsent() {
    return this.code === -32601 || this.code === -32604;
  }
  get isUnauthorized() {
    return this.code === -40100;
  }
}

/** The node did not answer, or its answer is not JSON-RPC. */
export class NoAnswer extends Error {}

/* --- tokens ------------------------------------------------------------------------------------ */

const KEY = "ophion-token";
export const token = {
  wanted: false,
  /** The token; empty after it has expired. */
  get value() {
    const text = sessionStorage.getItem(KEY) || "";
    return text && expiry(text) < Date.now() / 1000 ? "" : text;
  },
  set value(text) {
    text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY);
    events.dispatchEvent(new Event("token"));
  },
};
/** Return the expiry of a token in seconds; Infinity without `exp`. */
function expiry(text) {
  try {
    return JSON.parse(atob(text.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"))).exp ?? Infinity;
  } catch {
    return Infinity;
  }
}

/** Emits "token" when the token changes, and "unauthorized" when a token is required or invalid. */
export const events = new EventTarget();

export function headers() {
  const all = { "Content-Type": "application/json", Accept: "application/json" };
  if (token.value) all.Authorization = `Bearer ${token.value}`;
  return all;
}

export async function login(username, password) {
  const response = await fetch("jsonrpc/login", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ username, password }) });
  if (!response.ok) throw new NoAnswer(response.status === 401 ? "Name or password is wrong." : `The node answered ${response.status}.`);
  token.value = (await response.json()).token;
}

/* --- calls ------------------------------------------------------------------------------------- */

const queues = new Map();
let lastId = 0;

/** Call a method and return its result. `path` names another node of the network ("validator1/"). */
export function call(method, params = [], path = "") {
  return new Promise((resolve, reject) => {
    if (!queues.has(path)) {
      queues.set(path, []);
      queueMicrotask(() => {
        const queue = queues.get(path);
        queues.delete(path);
        for (let at = 0; at < queue.length; at += BATCH) send(path, queue.slice(at, at + BATCH));
      });
    }
    queues.get(path).push({ id: ++lastId, method, params, resolve, reject });
  });
}

/** Call a method that may be disabled. Returns null instead of an error. */
export async function attempt(method, params, path) {
  try {
    return await call(method, params, path);
  } catch (error) {
    if (error instanceof RpcError) return null;
    throw error;
  }
}

async function send(path, calls) {
  if (token.wanted && !token.value) {
    events.dispatchEvent(new Event("unauthorized"));
    for (const one of calls) one.reject(new RpcError({ code: -40100, message: "The node requires a token." }));
    return;
  }
  const body = calls.map(({ id, method, params }) => ({ jsonrpc: "2.0", id, method, params }));
  let answers;
  try {
    answers = await post(`${path}jsonrpc`, calls.length === 1 ? body[0] : body);
  } catch (error) {
    for (const one of calls) one.reject(error);
    return;
  }
  const byId = new Map((Array.isArray(answers) ? answers : [answers]).map((answer) => [answer.id, answer]));
  for (const one of calls) {
    const answer = byId.get(one.id) || (Array.isArray(answers) ? null : answers);
    if (!answer) one.reject(new NoAnswer("the batch was answered without this call"));
    else if (answer.error) {
      const error = new RpcError(answer.error);
      if (error.isUnauthorized && !token.value) unauthorized();
      one.reject(error);
    } else one.resolve(answer.result);
  }
}

/** Send one request unchanged, so that the playground can show the raw answer. */
export async function post(path, body) {
  let response, text;
  try {
    response = await fetch(path, { method: "POST", headers: headers(), body: JSON.stringify(body), signal: AbortSignal.timeout(TIMEOUT_MS) });
    text = await response.text();
  } catch (error) {
    throw new NoAnswer(error.name === "TimeoutError" ? "no answer in 30 seconds" : "the node cannot be reached");
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new NoAnswer(`status ${response.status}${text ? ": " + text.slice(0, 200) : ""}`);
  }
}

function unauthorized() {
  token.wanted = true;
  events.dispatchEvent(new Event("unauthorized"));
}
