// Verifies an Ophion proof bundle without a node.
//
//     npm install @noble/curves@1 @noble/hashes@1
//     node verify.mjs proof.json genesis.json [checkpoint.json]
//
// Prints what the bundle proves, as JSON. Otherwise prints what does not fit, and exits with 1.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { secp256k1 } from "@noble/curves/secp256k1";
import { keccak_256 } from "@noble/hashes/sha3";

// A proof has few signatures: small tables take less time to fill than large ones save.
secp256k1.utils.precompute(3);

const EMPTY_ROOT = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421";
const EMPTY_CODE = "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470";
const [PARENT, COINBASE, STATE, TRANSACTIONS, RECEIPTS, NUMBER, TIME, EXTRA, NONCE] = [0, 2, 3, 4, 5, 8, 11, 12, 14];
const ADD = "0xffffffffffffffff", DROP = "0x0000000000000000";

export class Refused extends Error {}

function check(holds, what) {
  if (!holds) throw new Refused(what);
}

// --- bytes: every value is 0x and lower-case hexadecimal digits; an RLP list is an array ---

const bytes = (text) => Uint8Array.from(Buffer.from(text.slice(2), "hex"));
const hex = (value) => "0x" + Buffer.from(value).toString("hex");
const keccak = (text) => hex(keccak_256(bytes(text)));
const size = (text) => text.length / 2 - 1;
const num = (text) => (text === "0x" ? 0n : BigInt(text));
const quantity = (value) => "0x" + value.toString(16);
const read = (value) => BigInt(value ?? 0);
const word = (text) => "0x" + text.slice(2).padStart(64, "0");

function minimal(value) {
  const digits = value.toString(16);
  return value === 0n ? "0x" : "0x" + (digits.length % 2 ? "0" + digits : digits);
}

function data(text) {
  check(typeof text === "string" && /^0x([0-9a-f]{2})*$/.test(text), `not hexadecimal: ${text}`);
  return text;
}

function encode(item) {
  const isList = Array.isArray(item);
  if (!isList && size(item) === 1 && item < "0x80") return item;
  const body = isList ? item.map((one) => encode(one).slice(2)).join("") : item.slice(2);
  const base = isList ? 0xc0 : 0x80;
  const length = body.length / 2;
  if (length < 56) return "0x" + (base + length).toString(16) + body;
  const width = minimal(BigInt(length)).slice(2);
  return "0x" + (base + 55 + width.length / 2).toString(16) + width + body;
}

function decode(text, what) {
  const input = text.slice(2);
  function item(at) {
    check(at < input.length, `${what}: malformed RLP`);
    const first = parseInt(input.slice(at, at + 2), 16);
    if (first < 0x80) return ["0x" + input.slice(at, at + 2), at + 2];
    let start = at + 2;
    let length = first & 0x3f;
    if (length > 55) {
      const width = (length - 55) * 2;
      length = parseInt(input.slice(start, start + width) || "0", 16);
      start += width;
    }
    const end = start + length * 2;
    check(end <= input.length, `${what}: an item ends after the input`);
    if (first < 0xc0) return ["0x" + input.slice(start, end), end];
    const found = [];
    for (let one; start < end; found.push(one)) [one, start] = item(start);
    return [found, end];
  }
  const [value] = item(0);
  check(encode(value) === text, `${what}: not canonical RLP`);
  return value;
}

function recover(digest, signature, what) {
  check(size(signature) === 65 && ["00", "01"].includes(signature.slice(-2)), `${what}: malformed signature`);
  try {
    const found = secp256k1.Signature.fromCompact(signature.slice(2, 130)).addRecoveryBit(Number("0x" + signature.slice(-2)));
    return "0x" + keccak(hex(found.recoverPublicKey(digest.slice(2)).toRawBytes(false).slice(1))).slice(26);
  } catch {
    throw new Refused(`${what}: invalid signature`);
  }
}

// --- Merkle proofs ---

/** Returns the value under a key, or null if the proof shows that there is none. */
function prove(root, key, nodes, what) {
  if (root === EMPTY_ROOT && nodes.length === 0) return null;
  let path = key.slice(2);
  for (const [position, node] of nodes.entries()) {
    check(keccak(data(node)) === root, `${what}: node ${position} does not have the hash that its parent names`);
    let item = decode(node, what);
    while (Array.isArray(item)) {
      if (item.length === 17) {
        [item, path] = path ? [item[parseInt(path[0], 16)], path.slice(1)] : [item[16], null];
      } else {
        const head = item[0].slice(2);
        const isLeaf = "23".includes(head[0]);
        const part = head.slice("13".includes(head[0]) ? 1 : 2);
        const fits = isLeaf ? path === part : path.startsWith(part);
        [item, path] = [fits ? item[1] : "0x", isLeaf ? null : path.slice(part.length)];
      }
      if (path === null || item === "0x") {
        check(position + 1 === nodes.length, `${what}: nodes after the end of the proof`);
        return item === "0x" ? null : item;
      }
    }
    root = item;
  }
  throw new Refused(`${what}: the proof ends before the value`);
}

// --- consensus ---

const lower = (value) =>
  value && typeof value === "object" && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name.toLowerCase(), lower(one)]))
    : value;
const addresses = (list) => list.map((one) => one.toLowerCase()).sort();

/** Rules and validators of the trusted network; accepts sealed headers in ascending order. */
class Network {
  constructor(genesis, checkpoint) {
    const config = lower(genesis.config);
    const extra = genesis.extraData.toLowerCase();
    const names = ["ibft2", "qbft", "clique"].filter((name) => name in config);
    check(names.length, "genesis: none of ibft2, qbft and clique");
    this.chainId = read(config.chainid);
    const later = names[0] === "ibft2" ? read(config.qbft?.startblock) : 0n;
    this.eras = [[0n, names[0]], ...(later ? [[later, "qbft"]] : [])];
    this.isClique = names[0] === "clique";
    this.epoch = Object.fromEntries(names.map((name) => [name, read(config[name].epochlength ?? config[name].epoch ?? 30000)]));
    this.overrides = new Map();
    for (const [first, name] of this.eras) {
      for (const change of (config.transitions?.[name] ?? []).map(lower)) {
        const at = read(change.block) || 1n;
        if (!change.validators || at < first) continue;
        check(at < 10n ** 9n, "genesis: validators by a transition at a time are not supported");
        this.overrides.set(at, addresses(change.validators));
      }
    }
    const signers = extra.slice(66, -130).match(/.{40}/g)?.map((one) => "0x" + one) ?? [];
    this.validators = addresses(this.isClique ? signers : decode(extra, "genesis")[1]);
    this.number = read(checkpoint?.number);
    this.hash = checkpoint?.hash.toLowerCase();
    if (checkpoint) this.validators = addresses(checkpoint.validators);
    this.validators = this.overrides.get(this.number + 1n) ?? this.validators;
    this.votes = [];
  }

  protocol(number) {
    return this.eras.findLast(([first]) => number >= first)[1];
  }

  /** Returns the last block up to this one after which votes restart. */
  lastEpoch(number) {
    const [first, name] = this.eras.findLast(([one]) => number + 1n >= one);
    return number - (number - (first ? first - 1n : 0n)) % this.epoch[name];
  }

  /** Returns block hash and digest of the seals. */
  hashes(header) {
    const extra = header[EXTRA];
    const of = (changed) => keccak(encode(header.with(EXTRA, changed)));
    const name = this.protocol(num(header[NUMBER]));
    if (name === "clique") return [of(extra), of(extra.slice(0, -130) || "0x")];
    const items = decode(extra, "extra data");
    check(Array.isArray(items) && items.length === 5, "header: the extra data has not five items");
    if (name === "ibft2") return [of(encode(items.slice(0, 3))), of(encode(items.slice(0, 4)))];
    return [of(encode([...items.slice(0, 3), "0x", []])), of(encode([...items.slice(0, 4), []]))];
  }

  /** Checks the seals with the validators so far, counts the vote, and returns the authors of the seals. */
  accept(header) {
    const number = num(header[NUMBER]);
    const what = `header ${number}`;
    check(number > this.number, `${what}: it does not follow header ${this.number}`);
    const passed = [...this.overrides.keys()].filter((at) => this.number + 1n < at && at <= number).sort((a, b) => (a < b ? -1 : 1));
    if (passed.length || this.lastEpoch(number - 1n) > this.number) this.votes = [];
    if (passed.length) this.validators = this.overrides.get(passed.at(-1));
    const digest = this.hashes(header)[1];
    let authors, voter, vote;
    if (this.isClique) {
      check(size(header[EXTRA]) >= 97 && [ADD, DROP].includes(header[NONCE]), `${what}: malformed`);
      authors = [recover(digest, "0x" + header[EXTRA].slice(-130), what)];
      const [target, adds] = [header[COINBASE], header[NONCE] === ADD];
      [voter, vote] = [authors[0], [target, this.validators.includes(target) !== adds ? adds : null]];
    } else {
      const [, listed, cast, , seals] = decode(header[EXTRA], what);
      check(listed.length, `${what}: a contract names the validators; use a checkpoint of the proven block`);
      check(`${listed}` === `${this.validators}`, `${what}: the votes do not lead to the validators that it lists`);
      authors = seals.map((seal, at) => recover(digest, seal, `${what}: seal ${at}`));
      check(authors.length * 3 >= listed.length * 2, `${what}: ${authors.length} seals of ${listed.length} validators`);
      [voter, vote] = [header[COINBASE], Array.isArray(cast) && cast.length ? [cast[0], cast[1] === "0xff"] : null];
    }
    for (const one of [voter, ...authors]) check(this.validators.includes(one), `${what}: ${one} is not a validator`);
    check(new Set(authors).size === authors.length, `${what}: two seals of one validator`);
    this.number = number;
    if (this.overrides.has(number + 1n)) [this.validators, this.votes] = [this.overrides.get(number + 1n), []];
    if (this.lastEpoch(number) === number) this.votes = [];
    else if (vote) this.count(voter, ...vote);
    return authors;
  }

  /** Counts a vote; `adds` null withdraws one. More than half of the validators change the set. */
  count(voter, target, adds) {
    this.votes = [...this.votes.filter((one) => one.voter !== voter || one.target !== target), { voter, target, adds }];
    for (const way of [true, false]) {
      const standing = this.votes.filter((one) => one.target === target && one.adds === way).length;
      if (standing <= Math.floor(this.validators.length / 2)) continue;
      const others = this.validators.filter((one) => one !== target);
      this.validators = way ? [...others, target].sort() : others;
      this.votes = this.votes.filter((one) => one.target !== target && (way || one.voter !== target));
      break;
    }
  }
}

// --- the bundle ---

function members(value, ...names) {
  const fits = value && typeof value === "object" && `${Object.keys(value)}` === `${names}`;
  check(fits, `expected the members ${names.join(", ")}`);
  return Object.values(value);
}

function headerOf(text, what) {
  const found = decode(data(text), what);
  check(Array.isArray(found) && found.length >= 15, `${what}: not a header`);
  return found;
}

/** Returns what a bundle proves. Throws `Refused` with what does not fit. */
export function verify(text, genesis, checkpoint) {
  try {
    return verifyBundle(text, JSON.parse(text), genesis, checkpoint);
  } catch (error) {
    throw error instanceof Refused ? error : new Refused(`malformed: ${error.message}`);
  }
}

function verifyBundle(text, bundle, genesis, checkpoint) {
  check(JSON.stringify(bundle) + "\n" === text && /^[\x00-\x7f]*$/.test(text), "the file is not in canonical form");
  const names = "format chainId consensus block votes header confirmations transaction accounts digest".split(" ");
  const [form, chainId, consensus, block, votes, raw, confirmations, transaction, accounts, digest] = members(bundle, ...names);
  const network = new Network(genesis, checkpoint);
  const header = headerOf(raw, "header");
  const number = num(header[NUMBER]);
  const hash = network.hashes(header)[0];
  check(form === "ophion-proof/1", "format: unknown");
  check(chainId === quantity(network.chainId), "chainId: not that of the genesis file");
  check(consensus === network.protocol(number), "consensus: not that of the genesis file");
  const [blockNumber, blockHash] = members(block, "number", "hash");
  check(blockNumber === quantity(number) && blockHash === hash, "block: not that of the header");
  const isTrusted = network.hash === hash;
  const atEpoch = network.lastEpoch(network.number) === network.number;
  check(isTrusted || atEpoch, "checkpoint: neither an epoch block nor the proven block");
  for (const [position, one] of votes.entries()) {
    const vote = headerOf(one, `votes[${position}]`);
    check(num(vote[NUMBER]) < number && !isTrusted, `votes[${position}]: not needed`);
    if (num(vote[NUMBER]) > read(checkpoint?.number) || !checkpoint) network.accept(vote);
  }
  let [sealers, validators, parent] = [[], 0, hash];
  if (isTrusted) {
    check(!confirmations.length, "confirmations: not needed");
  } else {
    validators = network.validators.length;
    sealers = network.accept(header);
    for (const [position, one] of confirmations.entries()) {
      const what = `confirmations[${position}]`;
      const next = headerOf(one, what);
      check(network.isClique && sealers.length <= Math.floor(validators / 2), `${what}: not needed`);
      check(next[PARENT] === parent && num(next[NUMBER]) === network.number + 1n, `${what}: does not follow`);
      const [author] = network.accept(next);
      parent = network.hashes(next)[0];
      if (!sealers.includes(author)) sealers.push(author);
    }
    check(sealers.length > Math.floor(validators / 2), "confirmations: more than half of the signers must confirm the block");
  }
  const proven = {
    block: { number: quantity(number), hash, timestamp: quantity(num(header[TIME])) },
    validators: quantity(validators),
    sealers,
    transaction: transaction && verifyTransaction(transaction, header, network.chainId),
    accounts: accounts.map((account) => verifyAccount(account, header[STATE])),
  };
  delete bundle.digest;
  const content = JSON.stringify(bundle) + "\n";
  check(keccak(hex(Buffer.from(content))) === digest, "digest: the file has changed since its export");
  return proven;
}

function verifyTransaction(proof, header, expected) {
  const [hash, index, nodes, receiptNodes] = members(proof, "hash", "index", "proof", "receiptProof");
  check(/^0x(0|[1-9a-f][0-9a-f]*)$/.test(index), "transaction.index: malformed");
  const key = encode(minimal(BigInt(index)));
  const raw = prove(header[TRANSACTIONS], key, nodes, "transaction");
  const receipt = prove(header[RECEIPTS], key, receiptNodes, "receipt");
  check(raw && receipt, "transaction.index: the block has no such transaction");
  check(keccak(raw) === hash, "transaction.hash: not that of the proven transaction");
  let fields, chain, payload, parity, to;
  if (raw >= "0xc0") {
    fields = decode(raw, "transaction");
    const v = num(fields[6]);
    chain = v > 34n ? (v - 35n) / 2n : expected;
    payload = encode([...fields.slice(0, 6), ...(v > 34n ? [minimal(chain), "0x", "0x"] : [])]);
    [parity, to] = [v > 34n ? (v - 35n) % 2n : v - 27n, 3];
  } else {
    fields = decode("0x" + raw.slice(4), "transaction");
    [chain, parity, to] = [num(fields[0]), num(fields.at(-3)), raw.startsWith("0x01") ? 4 : 5];
    payload = raw.slice(0, 4) + encode(fields.slice(0, -3)).slice(2);
  }
  check(chain === expected, "transaction: signed for another chain");
  const signature = word(fields.at(-2)) + word(fields.at(-1)).slice(2) + (parity ? "01" : "00");
  const [status, used, , logs] = decode(receipt >= "0xc0" ? receipt : "0x" + receipt.slice(4), "receipt");
  return {
    hash,
    index,
    from: recover(keccak(payload), signature, "transaction"),
    to: fields[to] === "0x" ? null : fields[to],
    value: quantity(num(fields[to + 1])),
    input: fields[to + 2],
    status,
    cumulativeGasUsed: quantity(num(used)),
    logs: logs.map(([address, topics, content]) => ({ address, topics, data: content })),
  };
}

function verifyAccount(proof, stateRoot) {
  const [address, nodes, slots] = members(proof, "address", "proof", "slots");
  const value = prove(stateRoot, keccak(data(address)), nodes, `account ${address}`);
  const [nonce, balance, root, code] = value ? decode(value, "account") : ["0x", "0x", EMPTY_ROOT, EMPTY_CODE];
  return {
    address,
    exists: value !== null,
    nonce: quantity(num(nonce)),
    balance: quantity(num(balance)),
    storageRoot: root,
    codeHash: code,
    slots: slots.map((slot) => {
      const [key, path] = members(slot, "key", "proof");
      const stored = prove(root, keccak(data(key)), path, `account ${address}, slot ${key}`);
      return { key, value: stored ? quantity(num(decode(stored, "slot"))) : "0x0" };
    }),
  };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [text, ...trusted] = process.argv.slice(2, 5).map((name) => readFileSync(name, "utf8"));
  try {
    console.log(JSON.stringify(verify(text, ...trusted.map((one) => JSON.parse(one))), null, 2));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    console.error(`Refused: ${error.message}`);
    process.exitCode = 1;
  }
}
