/*
 * Contract ABI: types, decoding and encoding of values, selectors and topics. Pure functions of bytes and text.
 *
 * A type is {base, size, components, inner, length}; decoded values are BigInt, boolean, hex text, text, arrays and,
 * for tuples, arrays with names. Invalid data throws `AbiError`: offsets and lengths are checked against the size of
 * the data.
 */

import { keccakHex } from "./keccak.js";
import { fromBytes, toBytes } from "./format.js";

export class AbiError extends Error {}

const MAX_VALUES = 4096;

/* --- types ------------------------------------------------------------------------------------- */

/** Parse a type: a parameter of an ABI ({type, components}), or text such as "uint256[2][]" or "(address,bool)". */
export function typeOf(parameter) {
  const { type, components } = typeof parameter === "string" ? { type: parameter } : parameter;
  const array = /^(.*)\[(\d*)\]$/s.exec(type);
  if (array) return { base: "array", inner: typeOf({ type: array[1], components }), length: array[2] === "" ? null : Number(array[2]) };
  if (type === "tuple" || type.startsWith("(")) {
    const parts = type === "tuple" ? components || [] : separate(type.slice(1, -1)).map((one) => ({ type: one }));
    return { base: "tuple", components: parts.map((part) => ({ name: part.name || "", type: typeOf(part) })) };
  }
  const known = /^(u?int|bytes|address|bool|string|function)(\d*)$/.exec(type);
  if (!known) throw new AbiError(`unknown type ${type}`);
  const [, base, digits] = known;
  if (base === "uint" || base === "int") {
    const bits = digits === "" ? 256 : Number(digits);
    if (bits < 8 || bits > 256 || bits % 8) throw new AbiError(`unknown type ${type}`);
    return { base, size: bits };
  }
  if (base === "bytes" && digits !== "") {
    if (Number(digits) < 1 || Number(digits) > 32) throw new AbiError(`unknown type ${type}`);
    return { base: "fixed", size: Number(digits) };
  }
  if (digits !== "") throw new AbiError(`unknown type ${type}`);
  return base === "function" ? { base: "fixed", size: 24 } : { base };
}

/** Split "a,(b,c),d[2]" at its outer commas. */
export function separate(text) {
  const parts = [];
  let depth = 0, start = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "(") depth++;
    else if (text[at] === ")") depth--;
    else if (text[at] === "," && depth === 0) {
      parts.push(text.slice(start, at).trim());
      start = at + 1;
    }
  }
  const rest = text.slice(start).trim();
  return rest || parts.length ? [...parts, rest] : [];
}

export function written(type) {
  switch (type.base) {
    case "array": return `${written(type.inner)}[${type.length ?? ""}]`;
    case "tuple": return `(${type.components.map((part) => written(part.type)).join(",")})`;
    case "uint": case "int": return type.base + type.size;
    case "fixed": return `bytes${type.size}`;
    default: return type.base;
  }
}

function isDynamic(type) {
  if (type.base === "array") return type.length === null || isDynamic(type.inner);
  if (type.base === "tuple") return type.components.some((part) => isDynamic(part.type));
  return type.base === "bytes" || type.base === "string";
}

function headSize(type) {
  if (isDynamic(type)) return 32;
  if (type.base === "array") return type.length * headSize(type.inner);
  if (type.base === "tuple") return type.components.reduce((sum, part) => sum + headSize(part.type), 0);
  return 32;
}

/* --- decoding ---------------------------------------------------------------------------------- */

/** Decode the values of parameters from `data` (hex text). */
export function decode(parameters, data) {
  const raw = typeof data === "string" ? toBytes(data) : data;
  const budget = { left: MAX_VALUES };
  return readTuple(parameters.map((one) => ({ name: one.name || "", type: typeOf(one) })), raw, 0, budget);
}

function word(raw, at) {
  if (at + 32 > raw.length) throw new AbiError("the data is too short");
  let value = 0n;
  for (let index = at; index < at + 32; index++) value = (value << 8n) | BigInt(raw[index]);
  return value;
}

function small(raw, at) {
  const value = word(raw, at);
  if (value > BigInt(raw.length)) throw new AbiError("a length or offset leads beyond the data");
  return Number(value);
}

function readTuple(parts, raw, base, budget) {
  const values = [];
  let at = base;
  for (const { type } of parts) {
    values.push(readAt(type, raw, isDynamic(type) ? base + small(raw, at) : at, budget));
    at += headSize(type);
  }
  values.names = parts.map((part) => part.name);
  return values;
}

function readAt(type, raw, at, budget) {
  if (--budget.left < 0) throw new AbiError(`more than ${MAX_VALUES} values`);
  switch (type.base) {
    case "uint": {
      const value = word(raw, at);
      if (value >> BigInt(type.size)) throw new AbiError(`not a uint${type.size}`);
      return value;
    }
    case "int": {
      const value = BigInt.asIntN(256, word(raw, at));
      if (BigInt.asIntN(type.size, value) !== value) throw new AbiError(`not an int${type.size}`);
      return value;
    }
    case "bool": {
      const value = word(raw, at);
      if (value > 1n) throw new AbiError("not a bool");
      return value === 1n;
    }
    case "address": {
      const value = word(raw, at);
      if (value >> 160n) throw new AbiError("not an address");
      return "0x" + value.toString(16).padStart(40, "0");
    }
    case "fixed":
      word(raw, at);
      if (raw.subarray(at + type.size, at + 32).some(Boolean)) throw new AbiError(`not a bytes${type.size}`);
      return fromBytes(raw.subarray(at, at + type.size));
    case "bytes": case "string": {
      const length = small(raw, at);
      if (at + 32 + length > raw.length) throw new AbiError("the data is too short");
      const content = raw.subarray(at + 32, at + 32 + length);
      return type.base === "bytes" ? fromBytes(content) : new TextDecoder().decode(content);
    }
    case "tuple":
      return readTuple(type.components, raw, at, budget);
    default: {
      const isCounted = type.length === null, length = isCounted ? small(raw, at) : type.length;
      if (length > budget.left) throw new AbiError(`more than ${MAX_VALUES} values`);
      const part = { name: "", type: type.inner }, values = readTuple(new Array(length).fill(part), raw, isCounted ? at + 32 : at, budget);
      delete values.names;
      return values;
    }
  }
}

/* --- encoding, for calls made by hand ---------------------------------------------------------- */

/** Encode JSON values (text, numbers, arrays) as hex text. */
export function encode(parameters, values) {
  if (values.length !== parameters.length) throw new AbiError(`${parameters.length} values are expected`);
  return "0x" + writeTuple(parameters.map(typeOf), values);
}

const hexWord = (value) => BigInt.asUintN(256, BigInt(value)).toString(16).padStart(64, "0");
const padded = (digits) => digits.padEnd(Math.ceil(digits.length / 64) * 64, "0");

function writeTuple(types, values) {
  let size = types.reduce((sum, type) => sum + headSize(type), 0), head = "", tail = "";
  types.forEach((type, at) => {
    const part = write(type, values[at]);
    if (isDynamic(type)) {
      head += hexWord(size);
      tail += part;
      size += part.length / 2;
    } else head += part;
  });
  return head + tail;
}

function write(type, value) {
  switch (type.base) {
    case "uint": case "int": {
      let number;
      try {
        number = BigInt(value);
      } catch {
        throw new AbiError(`${value} is no number`);
      }
      if ((type.base === "uint" ? BigInt.asUintN : BigInt.asIntN)(type.size, number) !== number) throw new AbiError(`${value} is no ${written(type)}`);
      return hexWord(number);
    }
    case "bool": {
      const known = { true: "1", false: "0" }[String(value)];
      if (!known) throw new AbiError(`${value} is neither true nor false`);
      return hexWord(known);
    }
    case "address":
      if (!/^0x[0-9a-f]{40}$/i.test(value)) throw new AbiError(`${value} is no address`);
      return value.slice(2).toLowerCase().padStart(64, "0");
    case "string": {
      const raw = fromBytes(new TextEncoder().encode(String(value))).slice(2);
      return hexWord(raw.length / 2) + padded(raw);
    }
    case "bytes": case "fixed": {
      if (!/^0x([0-9a-f]{2})*$/i.test(value)) throw new AbiError(`${value} is not hex text`);
      const digits = value.slice(2).toLowerCase();
      if (type.base === "bytes") return hexWord(digits.length / 2) + padded(digits);
      if (digits.length !== type.size * 2) throw new AbiError(`${type.size} bytes are expected`);
      return padded(digits);
    }
    case "tuple":
      if (!Array.isArray(value) || value.length !== type.components.length) throw new AbiError(`${type.components.length} values are expected in ${written(type)}`);
      return writeTuple(type.components.map((part) => part.type), value);
    default:
      if (!Array.isArray(value) || (type.length !== null && value.length !== type.length)) throw new AbiError(`an array is expected for ${written(type)}`);
      return (type.length === null ? hexWord(value.length) : "") + writeTuple(value.map(() => type.inner), value);
  }
}

/* --- functions, events, errors ----------------------------------------------------------------- */

export const signature = (entry) => `${entry.name}(${(entry.inputs || []).map((input) => written(typeOf(input))).join(",")})`;
export const selector = (entry) => keccakHex(signature(entry)).slice(0, 10);
export const topic = (entry) => keccakHex(signature(entry));

/** Parse an entry such as "transfer(address to, uint256 value)". "indexed" marks topics of events. */
export function entryOf(text, type) {
  const [, name, inside] = /^(\w+)\((.*)\)$/.exec(text);
  const inputs = separate(inside).map((part) => {
    const words = part.split(/\s+/);
    return { type: words[0], indexed: words.includes("indexed"), name: words.length > 1 ? words.at(-1) : "" };
  });
  return { type, name, inputs };
}

/** Decode a log. Values are in the order of the event; indexed strings and arrays are hashes. */
export function decodeLog(entry, topics, data) {
  const indexed = entry.inputs.filter((input) => input.indexed), others = entry.inputs.filter((input) => !input.indexed);
  const marks = topics.slice(entry.anonymous ? 0 : 1);
  if (marks.length !== indexed.length) throw new AbiError("another number of topics");
  const plain = decode(others, data);
  const values = entry.inputs.map((input) => {
    if (!input.indexed) return plain.shift();
    const mark = marks.shift(), type = typeOf(input);
    return isDynamic(type) || type.base === "array" || type.base === "tuple" ? mark : decode([input], mark)[0];
  });
  values.names = entry.inputs.map((input) => input.name || "");
  return values;
}
