/*
 * ABIs stored in this browser: dropped files, messages from tools of the same origin, and common token functions.
 *
 * A function is found by its selector and an event by its topic, first in the ABI of the address, then in all ABIs.
 */

import { AbiError, decode, decodeLog, entryOf, selector, signature, topic, typeOf } from "./abi_codec.js";
import { h } from "./dom.js";
import { names } from "./format.js";

const KEY = "ophion-abis", MOST = 200, LARGEST = 1_000_000;

/* Common token functions, and Solidity's panic codes. */
const COMMON = [
  ...["transfer(address to, uint256 value)", "transferFrom(address from, address to, uint256 value)", "approve(address spender, uint256 value)",
    "balanceOf(address owner)", "allowance(address owner, address spender)", "totalSupply()", "name()", "symbol()", "decimals()", "ownerOf(uint256 id)",
    "safeTransferFrom(address from, address to, uint256 id)", "setApprovalForAll(address operator, bool approved)", "mint(address to, uint256 value)",
    "burn(uint256 value)", "owner()", "transferOwnership(address newOwner)", "deposit()", "withdraw(uint256 value)"].map((text) => entryOf(text, "function")),
  ...["Transfer(address indexed from, address indexed to, uint256 value)", "Transfer(address indexed from, address indexed to, uint256 indexed id)",
    "Approval(address indexed owner, address indexed spender, uint256 value)", "ApprovalForAll(address indexed owner, address indexed operator, bool approved)",
    "OwnershipTransferred(address indexed before, address indexed now)"].map((text) => entryOf(text, "event")),
  entryOf("Error(string message)", "error"), entryOf("Panic(uint256 code)", "error"),
];
const PANICS = { 1: "an assertion failed", 17: "arithmetic overflow or underflow", 18: "division by zero", 33: "no such member of an enum", 34: "storage is badly encoded", 49: "pop of an empty array", 50: "index out of bounds", 65: "too much memory", 81: "call of a function that was never set" };

let kept = null, index = null;

/** Return all stored ABIs: {name, abi, addresses}. */
export function abis() {
  if (kept === null) {
    try {
      kept = JSON.parse(localStorage.getItem(KEY)) || [];
    } catch {
      kept = [];
    }
    nameAddresses();
  }
  return kept;
}

function nameAddresses() {
  for (const one of kept) for (const address of one.addresses) names.set(address, one.name);
}

/** Store the ABI in a text: an array of entries, or compiler output. */
export function keep(text, name) {
  if (text.length > LARGEST * 20) throw new AbiError("the file is too large");
  let content;
  try {
    content = typeof text === "string" ? JSON.parse(text) : text;
  } catch {
    throw new AbiError(`${name} is no JSON`);
  }
  const abi = (Array.isArray(content) ? content : content?.abi)?.filter((entry) => ["function", "event", "error", "constructor"].includes(entry?.type));
  if (!abi?.length) throw new AbiError(`${name} contains no ABI`);
  for (const entry of abi) for (const one of [...(entry.inputs || []), ...(entry.outputs || [])]) typeOf(one);
  const addresses = [content.address, content.contractAddress, ...Object.values(content.networks || {}).map((one) => one?.address)].filter((one) => /^0x[0-9a-f]{40}$/i.test(one)).map((one) => one.toLowerCase());
  const title = (content.contractName || name || "contract").replace(/\.(abi|json)+$/i, "");
  const before = abis().find((one) => one.name === title);
  kept = [{ name: title, abi, addresses: [...new Set([...(before?.addresses || []), ...addresses])] }, ...kept.filter((one) => one !== before)].slice(0, MOST);
  save();
  return kept[0];
}

export function forget(name) {
  kept = abis().filter((one) => one.name !== name);
  save();
}

/** Use the stored ABI `name` for the contract at this address. */
export function bind(name, address) {
  const wanted = address.toLowerCase();
  for (const one of abis()) one.addresses = one.addresses.filter((other) => other !== wanted);
  abis().find((one) => one.name === name)?.addresses.push(wanted);
  names.delete(wanted);
  save();
}

function save() {
  index = null;
  nameAddresses();
  try {
    localStorage.setItem(KEY, JSON.stringify(kept));
  } catch { /* storage is full: the ABIs stay in memory until the tab is closed */ }
}

export const abiAt = (address) => abis().find((one) => one.addresses.includes(address?.toLowerCase())) || null;

/** Return all ABI entries by selector or topic. */
function entries() {
  if (index) return index;
  index = new Map();
  for (const [owner, abi] of [...abis().map((one) => [one, one.abi]), [null, COMMON]]) {
    for (const entry of abi) {
      if (entry.type === "constructor" || (entry.type === "event" && entry.anonymous)) continue;
      const mark = entry.type === "event" ? topic(entry) : selector(entry);
      index.has(mark) ? index.get(mark).push({ owner, entry }) : index.set(mark, [{ owner, entry }]);
    }
  }
  return index;
}

/** Return the ABI entries with this selector or topic; entries in ABIs of this address come first. */
function candidates(mark, address) {
  const own = abiAt(address);
  return [...(entries().get(mark) || [])].sort((a, b) => (b.owner === own) - (a.owner === own)).map((one) => one.entry);
}

function firstThatFits(found, read) {
  for (const entry of found) {
    try {
      return { entry, signature: signature(entry), values: read(entry) };
    } catch (error) {
      if (!(error instanceof AbiError)) throw error;
    }
  }
  return null;
}

/** Decode call data; return {entry, signature, values} or null. */
export function decodeInput(input, address) {
  if (!input || input.length < 10) return null;
  const found = candidates(input.slice(0, 10), address).filter((entry) => entry.type === "function");
  return firstThatFits(found, (entry) => decode(entry.inputs || [], "0x" + input.slice(10)));
}

export function decodeOutput(entry, output) {
  return entry?.outputs?.length && output && output !== "0x" ? firstThatFits([entry], () => decode(entry.outputs, output)) : null;
}

export function decodeEvent(log) {
  return log.topics.length ? firstThatFits(candidates(log.topics[0], log.address), (entry) => decodeLog(entry, log.topics, log.data)) : null;
}

/** Decode a revert reason. */
export function revertReason(data, address) {
  if (!data || data === "0x") return null;
  const found = firstThatFits(candidates(data.slice(0, 10), address).filter((entry) => entry.type === "error"), (entry) => decode(entry.inputs || [], "0x" + data.slice(10)));
  if (!found) return data;
  if (found.signature === "Error(string)") return found.values[0];
  if (found.signature === "Panic(uint256)") return `Panic ${found.values[0]}: ${PANICS[Number(found.values[0])] || "unknown"}`;
  return `${found.entry.name}(${found.values.map(plain).join(", ")})`;
}

export const plain = (value) => (Array.isArray(value) ? `[${value.map(plain).join(", ")}]` : typeof value === "string" && !value.startsWith("0x") ? JSON.stringify(value) : String(value));

/* --- import ----------------------------------------------------------------------------- */

/** Accept dropped files, and messages {name, abi, address} on the channel `ophion-abi`. */
export function acceptAbis(changed) {
  abis();
  const note = h("div.toast", { role: "status" });
  document.body.append(note);
  const tell = (text, isBad) => {
    note.textContent = text;
    note.className = isBad ? "toast shown bad" : "toast shown";
    setTimeout(() => note.classList.remove("shown"), 4000);
  };
  const take = (text, name) => {
    try {
      const one = keep(text, name);
      tell(`${one.name}: ${one.abi.length} entries imported.`);
      changed();
    } catch (error) {
      tell(error.message, true);
    }
  };
  addEventListener("dragover", (event) => {
    if ([...(event.dataTransfer?.types || [])].includes("Files")) event.preventDefault();
  });
  addEventListener("drop", async (event) => {
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    for (const file of [...event.dataTransfer.files].slice(0, 50)) take(file.size > LARGEST * 20 ? "x" : await file.text(), file.name);
  });
  new BroadcastChannel("ophion-abi").onmessage = ({ data }) => data && take({ ...data, contractName: String(data.name || "contract") }, String(data.name || "contract"));
  takeText = take;
}

/** Imports an ABI from a text field of a view. */
export let takeText = null;
