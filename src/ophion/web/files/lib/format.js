/* Formats numbers, times and hex text for display. */

import { h } from "./dom.js";

const grouped = new Intl.NumberFormat("en-US");
const short1 = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });
const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

export const toNumber = (quantity) => (quantity === null || quantity === undefined ? 0 : Number(BigInt(quantity)));
export const toHex = (number) => "0x" + BigInt(number).toString(16);
export const count = (value) => grouped.format(typeof value === "string" ? BigInt(value) : value);
export const brief = (value) => (Math.abs(value) < 10000 ? short1.format(value) : compact.format(value));
export const short = (hash, left = 8, right = 6) => (hash && hash.length > left + right + 3 ? `${hash.slice(0, left)}…${hash.slice(-right)}` : hash || "");

/** Format a rate with few significant digits. */
export function rate(value) {
  if (value >= 100) return grouped.format(Math.round(value));
  return value >= 10 ? value.toFixed(1) : value.toFixed(value === 0 ? 0 : 2);
}

/** Format an amount of wei in the unit with the shortest text. */
export function ether(wei) {
  const value = BigInt(wei);
  if (value === 0n) return "0";
  if (value < 10n ** 6n) return `${count(value)} wei`;
  if (value < 10n ** 14n) return `${fraction(value, 9)} gwei`;
  return `${fraction(value, 18)} ether`;
}

export function fraction(value, decimals, digits = 6) {
  const one = 10n ** BigInt(decimals);
  const rest = (value % one).toString().padStart(decimals, "0").slice(0, digits).replace(/0+$/, "");
  return count(value / one) + (rest ? "." + rest : "");
}

export function bytes(number) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  for (; number >= 1000 && at < units.length - 1; at++) number /= 1000;
  return `${number >= 100 || at === 0 ? Math.round(number) : number.toFixed(1)} ${units[at]}`;
}

export function seconds(value) {
  if (value < 0.0005) return "0 s";
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 90) return `${value < 10 ? value.toFixed(1) : Math.round(value)} s`;
  if (value < 5400) return `${Math.round(value / 60)} min`;
  if (value < 129600) return `${Math.round(value / 3600)} h`;
  return `${grouped.format(Math.round(value / 86400))} days`;
}

/** Format the age of a timestamp in seconds. The timestamp 0, common in genesis blocks, has no age. */
export function ago(timestamp) {
  if (!timestamp) return "at genesis";
  const passed = Date.now() / 1000 - timestamp;
  return passed < 0 ? `in ${seconds(-passed)}` : passed < 1 ? "just now" : `${seconds(passed)} ago`;
}

export function date(timestamp) {
  return timestamp ? new Date(timestamp * 1000).toISOString().replace("T", " ").replace(".000Z", " UTC") : "0";
}

/** Return bytes as text if they are printable, else null. */
export function printable(hex) {
  const raw = toBytes(hex);
  let end = raw.length;
  while (end && raw[end - 1] === 0) end--;
  let begin = 0;
  while (begin < end && raw[begin] === 0) begin++;
  if (begin === end) return null;
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(raw.subarray(begin, end));
    return /^[\x20-\x7e\u00a0-\uffff]+$/.test(text) ? text : null;
  } catch {
    return null;
  }
}

export function toBytes(hex) {
  const digits = hex.startsWith("0x") ? hex.slice(2) : hex;
  const raw = new Uint8Array(digits.length >> 1);
  for (let at = 0; at < raw.length; at++) raw[at] = parseInt(digits.substr(at * 2, 2), 16);
  return raw;
}

export const fromBytes = (raw) => "0x" + Array.from(raw, (one) => one.toString(16).padStart(2, "0")).join("");

/* --- links ------------------------------------------------------------------------------------- */

export function blockLink(number, text) {
  return h("a", { href: `#/block/${number}` }, text || count(number));
}

export function txLink(hash, long) {
  return h("a.hash", { href: `#/tx/${hash}`, title: hash }, long ? hash : short(hash));
}

/** Make a link to an address, with its name if `names` has one. */
export function addressLink(address, long) {
  const name = names.get(address.toLowerCase());
  return h("a.hash", { href: `#/address/${address}`, title: name ? `${name}, ${address}` : address }, name && !long ? h("b", name) : long ? address : short(address));
}

/** Link to the producer of a block. Clique headers name the producer only in the seal. */
export function proposerLink(address, long) {
  return /^0x0+$/.test(address) ? h("span.soft", { title: "Clique headers name no proposer; the signer is recovered from the seal." }, "not in header") : addressLink(address, long);
}

/** A storage word without leading zeros. */
export const trimmed = (word) => (word ? "0x" + (word.replace(/^0x0*/, "") || "0") : "0x0");

/** The short name of a storage slot. */
export const slotName = (slot) => (BigInt(slot) < 1_000_000n ? String(BigInt(slot)) : `${slot.slice(0, 8)}…${slot.slice(-4)}`);

/** Names of addresses: nodes of this network, contracts with a known address. */
export const names = new Map();
