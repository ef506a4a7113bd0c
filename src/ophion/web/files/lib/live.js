/*
 * Live chain data from one WebSocket subscription to `newHeads`.
 *
 * Listeners get at most two updates a second. Requests per update and stored history are bounded. A hidden tab sends no
 * requests. The module polls if there is no WebSocket, or if the WebSocket requires a token.
 */

import { call, token } from "./rpc.js";
import { headers, summary } from "./headers.js";
import { own, readNetwork } from "./nodes.js";
import { toNumber } from "./format.js";

const PAUSE_MS = 500, POLL_MS = 1000, MAX_ASKED = 20, KEPT_BLOCKS = 60, KEPT_SPANS = 240, MAX_WAITING = 400, LONGEST_SPAN_S = 30;

export const live = {
  /** "starting", "live", "polling" or "silent" */
  state: "starting",
  head: null,
  /** Newest blocks first: number, hash, timestamp, arrived, miner, txs (null: not requested), gasUsed, gasLimit. */
  blocks: [],
  /** Activity by interval: from, to (seconds), blocks, txs, gas. */
  spans: [],
  reason: "",
};

const listeners = new Set();
let socket = null, wantsSocket = true, waiting = [], missed = 0, timer = null, last = 0, delay = 500, poll = null;

/** Subscribe to updates. Returns a function that unsubscribes. */
export function onChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell() {
  for (const listener of listeners) listener();
}

function become(state, reason = "") {
  if (live.state === state && live.reason === reason) return;
  live.state = state;
  live.reason = reason;
  tell();
}

/** Start. `hasSocket` is false if browsers cannot use the WebSocket. */
export async function begin(hasSocket) {
  wantsSocket = hasSocket;
  await refill();
  wantsSocket ? connect() : startPolling();
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    live.state === "silent" || live.head === null ? refill() : schedule();
  });
}

/* --- the socket -------------------------------------------------------------------------------- */

/** Ask the gateway whether the node is online. Throws when it is not. */
async function look() {
  if (live.state === "silent") await readNetwork();
  if (live.state !== "live" && own()?.up === false) throw new Error(`${own().name} is offline`);
}

async function connect() {
  if (token.wanted) return startPolling();
  try {
    await look();
  } catch {
    return setTimeout(connect, 2 * POLL_MS);
  }
  const address = new URL("jsonws", location.href);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  address.hash = "";
  socket = new WebSocket(address);
  socket.onopen = () => {
    delay = 500;
    socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] }));
  };
  socket.onmessage = (event) => {
    const message = JSON.parse(event.data);
    if (message.id === 1) {
      if (message.error) {
        wantsSocket = false;
        socket.close();
      } else {
        clearTimeout(poll);
        become("live");
        catchUp();
      }
    } else if (message.method === "eth_subscription") note({ ...summary(message.params.result), isLive: true });
  };
  socket.onclose = () => {
    socket = null;
    if (!wantsSocket || token.wanted) return startPolling();
    if (live.state === "live") become("silent", "the connection was closed");
    delay = Math.min(delay * 2, 15000);
    setTimeout(connect, delay);
    startPolling();
  };
}

function startPolling() {
  clearTimeout(poll);
  poll = setTimeout(async () => {
    if (live.state === "live") return;
    if (!document.hidden) await catchUp();
    if (live.state !== "live") startPolling();
  }, live.state === "silent" ? 2 * POLL_MS : POLL_MS);
}

/** After missed notifications, request the head and process it like a notification. */
async function catchUp() {
  try {
    await look();
    const number = toNumber(await call("eth_blockNumber"));
    if (socket === null || live.state === "silent") become("polling");
    if (!live.head || number < live.head.number) await refill();
    else if (number > live.head.number) {
      const found = await headers(Math.max(live.head.number + 1, number - KEPT_BLOCKS + 1), number);
      missed += Math.max(0, number - live.head.number - found.length - waiting.length);
      for (const block of found.reverse()) note(block);
    }
  } catch (error) {
    become("silent", error.message);
  }
}

/* --- sampling ---------------------------------------------------------------------------------- */

function note(block) {
  waiting.push(block);
  if (waiting.length > MAX_WAITING) missed += waiting.splice(0, waiting.length - MAX_WAITING / 2).length;
  schedule();
}

function schedule() {
  if (timer !== null || document.hidden || !waiting.length) return;
  timer = setTimeout(tick, Math.max(0, last + PAUSE_MS - performance.now()));
}

async function tick() {
  last = performance.now();
  const heads = waiting, more = missed;
  waiting = [];
  missed = 0;
  try {
    await take(heads, more);
  } catch (error) {
    become(socket ? "live" : "silent", error.message);
  }
  timer = null;
  tell();
  schedule();
}

/** Add blocks in chain order. If many arrive at once, request only some transaction counts. */
async function take(heads, more) {
  const newest = heads.slice(-MAX_ASKED / 2), others = heads.slice(0, -MAX_ASKED / 2);
  const step = Math.max(1, Math.ceil(others.length / (MAX_ASKED / 2)));
  const asked = [...others.filter((_, at) => at % step === 0), ...newest].filter((block) => block.txs === null);
  const counts = await Promise.all(asked.map((block) => call("eth_getBlockTransactionCountByHash", [block.hash])));
  asked.forEach((block, at) => { block.txs = counts[at] === null ? 0 : toNumber(counts[at]); });
  const known = heads.filter((block) => block.txs !== null), all = heads.length + more;
  const scale = known.length ? all / known.length : 0, sum = (field) => known.reduce((total, block) => total + block[field], 0) * scale;
  const to = Date.now() / 1000, before = live.spans.at(-1);
  live.spans.push({ from: Math.max(before ? before.to : 0, to - LONGEST_SPAN_S), to, blocks: all, txs: sum("txs"), gas: sum("gasUsed") });
  if (live.spans.length > KEPT_SPANS) live.spans.splice(0, live.spans.length - KEPT_SPANS);
  const lowest = Math.min(...heads.map((block) => block.number));
  live.blocks = [...heads.reverse(), ...live.blocks.filter((block) => block.number < lowest)].slice(0, KEPT_BLOCKS);
  live.head = live.blocks[0];
}

/** Load recent blocks when the interface opens. */
async function refill() {
  try {
    await look();
    const number = toNumber(await call("eth_blockNumber"));
    live.blocks = await headers(Math.max(0, number - KEPT_BLOCKS + 1), number);
    live.head = live.blocks[0];
    live.spans = spansOf(live.blocks);
    if (live.state !== "live") become(socket ? "live" : "polling");
    tell();
  } catch (error) {
    become("silent", error.message);
  }
}

function spansOf(blocks) {
  const spans = [];
  for (let at = blocks.length - 2; at >= 0; at--) {
    const block = blocks[at], from = Math.max(blocks[at + 1].timestamp, block.timestamp - LONGEST_SPAN_S);
    const one = spans.at(-1);
    if (one && (one.to === block.timestamp || from === block.timestamp)) { // two adjacent blocks have the same timestamp, so they share a span
      one.blocks++;
      one.txs += block.txs;
      one.gas += block.gasUsed;
    } else spans.push({ from, to: block.timestamp, blocks: 1, txs: block.txs || 0, gas: block.gasUsed });
  }
  return spans;
}

/* --- figures ----------------------------------------------------------------------------------- */

/** Return the activity per second over the last `width` seconds. */
export function ratesOver(width) {
  const now = Date.now() / 1000, begin = now - width, sum = { blocks: 0, txs: 0, gas: 0 };
  for (const span of live.spans) {
    const length = Math.max(span.to - span.from, 0.001), share = (Math.min(span.to, now) - Math.max(span.from, begin)) / length;
    if (share > 0) for (const name of Object.keys(sum)) sum[name] += span[name] * Math.min(share, 1);
  }
  return { blocks: sum.blocks / width, txs: sum.txs / width, gas: sum.gas / width };
}

/** Return the mean time between the newest blocks in seconds; null if there are too few blocks. */
export function blockTime() {
  const some = live.blocks.filter((block) => block.timestamp > 0).slice(0, 30);
  return some.length < 2 ? null : (some[0].timestamp - some.at(-1).timestamp) / (some[0].number - some.at(-1).number);
}

/** Return the median delay between a block's timestamp and its arrival, in seconds. */
export function lateness() {
  const delays = live.blocks.filter((block) => block.isLive).slice(0, 15).map((block) => block.arrived - block.timestamp).sort((a, b) => a - b);
  return delays.length ? Math.max(0, delays[delays.length >> 1]) : null;
}
