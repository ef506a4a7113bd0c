"""Verifies an Ophion proof bundle without a node.

    pip install eth-keys coincurve 'eth-hash[pycryptodome]'
    python verify.py proof.json genesis.json [checkpoint.json]

Prints what the bundle proves, as JSON. If the bundle is invalid, prints the invalid part and exits with 1.
"""

import json
import re
import sys
from pathlib import Path

from eth_hash.auto import keccak
from eth_keys import keys
from eth_keys.exceptions import BadSignature, ValidationError

EMPTY_ROOT = bytes.fromhex("56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421")
EMPTY_CODE = bytes.fromhex("c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470")
PARENT, COINBASE, STATE, TRANSACTIONS, RECEIPTS, NUMBER, TIME, EXTRA, NONCE = 0, 2, 3, 4, 5, 8, 11, 12, 14


class Refused(Exception):
    """Raised when a part of the bundle is invalid."""


def check(holds, what):
    if not holds:
        raise Refused(what)


# --- RLP ---------------------------------------------------------------------------------------------------------


def encode(item):
    if isinstance(item, list):
        body, base = b"".join(map(encode, item)), 0xC0
    elif len(item) == 1 and item[0] < 0x80:
        return item
    else:
        body, base = item, 0x80
    if len(body) < 56:
        return bytes([base + len(body)]) + body
    size = len(body).to_bytes((len(body).bit_length() + 7) // 8, "big")
    return bytes([base + 55 + len(size)]) + size + body


def decode(data, what):
    def item(at):
        first = data[at]
        if first < 0x80:
            return data[at : at + 1], at + 1
        base, at, size = (0xC0 if first >= 0xC0 else 0x80), at + 1, first & 0x3F
        if size > 55:
            at, size = at + size - 55, int.from_bytes(data[at : at + size - 55], "big")
        end = at + size
        check(end <= len(data), f"{what}: an item ends after the input")
        if base == 0x80:
            return data[at:end], end
        found = []
        while at < end:
            one, at = item(at)
            found.append(one)
        return found, end

    try:
        value, _ = item(0)
    except (IndexError, RecursionError):
        raise Refused(f"{what}: malformed RLP") from None
    check(encode(value) == data, f"{what}: not canonical RLP")
    return value


def num(data):
    return int.from_bytes(data, "big")


def recover(digest, signature, what):
    check(len(signature) == 65 and signature[64] < 2, f"{what}: malformed signature")
    try:
        return keys.Signature(signature).recover_public_key_from_msg_hash(digest).to_canonical_address()
    except (BadSignature, ValidationError):
        raise Refused(f"{what}: invalid signature") from None


# --- Merkle proofs -----------------------------------------------------------------------------------------------


def prove(root, key, nodes, what):
    """Returns the value under a key, or None if the proof shows that the key is absent."""
    if root == EMPTY_ROOT and not nodes:
        return None
    path = key.hex()
    for position, node in enumerate(nodes):
        check(keccak(node) == root, f"{what}: node {position} does not have the hash that its parent names")
        item = decode(node, what)
        while isinstance(item, list):
            if len(item) == 17:
                item, path = (item[int(path[0], 16)], path[1:]) if path else (item[16], None)
            else:
                part = item[0].hex()
                is_leaf, part = part[0] in "23", part[1:] if part[0] in "13" else part[2:]
                fits = path == part if is_leaf else path.startswith(part)
                item, path = (item[1] if fits else b""), None if is_leaf else path[len(part) :]
            if path is None or not item:
                check(position + 1 == len(nodes), f"{what}: nodes after the end of the proof")
                return item or None
        root = item
    raise Refused(f"{what}: the proof ends before the value")


# --- consensus ---------------------------------------------------------------------------------------------------


def lower(value):
    return {k.lower(): lower(v) for k, v in value.items()} if isinstance(value, dict) else value


class Network:
    """Rules and validators of the trusted network; accepts sealed headers in ascending order."""

    def __init__(self, genesis, checkpoint):
        config, extra = lower(genesis["config"]), bytes.fromhex(genesis["extraData"][2:])
        self.chain_id, self.number, self.votes = read(config["chainid"]), 0, {}
        names = [name for name in ("ibft2", "qbft", "clique") if name in config]
        check(names, "genesis: none of ibft2, qbft and clique")
        later = read(config.get("qbft", {}).get("startblock", 0)) if names[0] == "ibft2" else 0
        self.eras = [(0, names[0])] + ([(later, "qbft")] if later else [])
        self.epoch = {n: read(config[n].get("epochlength", config[n].get("epoch", 30000))) for n in names}
        self.overrides = {}
        for first, name in self.eras:
            for change in config.get("transitions", {}).get(name, []):
                change = lower(change)
                at = max(read(change["block"]), 1)
                if change.get("validators") is not None and (at >= first):
                    check(at < 10**9, "genesis: validators by a transition at a time are not supported")
                    self.overrides[at] = sorted(map(unhex, change["validators"]))
        listed = [extra[at : at + 20] for at in range(32, len(extra) - 65, 20)]
        self.validators = sorted(listed if self.is_clique else decode(extra, "genesis")[1])
        self.hash = None
        if checkpoint:
            self.number, self.hash = read(checkpoint["number"]), unhex(checkpoint["hash"])
            self.validators = sorted(map(unhex, checkpoint["validators"]))
        self.validators = self.overrides.get(self.number + 1, self.validators)

    @property
    def is_clique(self):
        return self.eras[0][1] == "clique"

    def protocol(self, number):
        return next(name for first, name in reversed(self.eras) if number >= first)

    def last_epoch(self, number):
        """Returns the last block up to `number` after which all open votes are discarded."""
        first, name = next(era for era in reversed(self.eras) if number + 1 >= era[0])
        start = max(first - 1, 0)
        return number - (number - start) % self.epoch[name]

    def hashes(self, header):
        """Returns block hash and digest of the seals."""
        extra, name = header[EXTRA], self.protocol(num(header[NUMBER]))

        def of(changed):
            return keccak(encode([*header[:EXTRA], changed, *header[EXTRA + 1 :]]))

        if name == "clique":
            return of(extra), of(extra[:-65])
        items = decode(extra, "extra data")
        check(isinstance(items, list) and len(items) == 5, "header: the extra data has not five items")
        if name == "ibft2":
            return of(encode(items[:3])), of(encode(items[:4]))
        return of(encode([*items[:3], b"", []])), of(encode([*items[:4], []]))

    def accept(self, header):
        """Checks that current validators made the seals, counts the vote, and returns the authors of the seals."""
        number, what = num(header[NUMBER]), f"header {num(header[NUMBER])}"
        check(number > self.number, f"{what}: it does not follow header {self.number}")
        passed = [at for at in sorted(self.overrides) if self.number + 1 < at <= number]
        if passed or self.last_epoch(number - 1) > self.number:
            self.validators, self.votes = self.overrides[passed[-1]] if passed else self.validators, {}
        _, digest = self.hashes(header)
        if self.is_clique:
            check(len(header[EXTRA]) >= 97 and header[NONCE] in (bytes(8), b"\xff" * 8), f"{what}: malformed")
            authors = [recover(digest, header[EXTRA][-65:], what)]
            voter, vote = authors[0], (header[COINBASE], header[NONCE] != bytes(8))
            vote = vote if (vote[0] in self.validators) != vote[1] else (vote[0], None)
        else:
            _, listed, cast, _, seals = decode(header[EXTRA], what)
            check(listed, f"{what}: a contract names the validators; use a checkpoint of the proven block")
            check(listed == self.validators, f"{what}: the votes do not lead to the validators that it lists")
            authors = [recover(digest, seal, f"{what}: seal {at}") for at, seal in enumerate(seals)]
            check(len(authors) * 3 >= len(listed) * 2, f"{what}: {len(authors)} seals of {len(listed)} validators")
            voter, vote = header[COINBASE], (cast[0], cast[1] == b"\xff") if cast else None
        for author in [voter, *authors]:
            check(author in self.validators, f"{what}: 0x{author.hex()} is not a validator")
        check(len(set(authors)) == len(authors), f"{what}: two seals of one validator")
        self.number = number
        if number + 1 in self.overrides:
            self.validators, self.votes = self.overrides[number + 1], {}
        if self.last_epoch(number) == number:
            self.votes = {}
        elif vote:
            self.count(voter, *vote)
        return authors

    def count(self, voter, target, adds):
        """Counts a vote of `voter` on `target`. If `adds` is None, the voter withdraws its vote. More than half of the
        validators must agree to change the validator set.
        """
        self.votes[voter, target] = adds
        for way in (True, False):
            if sum(v is way for (_, t), v in self.votes.items() if t == target) > len(self.validators) // 2:
                self.validators = sorted({*self.validators, target} if way else {*self.validators} - {target})
                self.votes = {k: v for k, v in self.votes.items() if k[1] != target and (way or k[0] != target)}
                break


# --- the bundle --------------------------------------------------------------------------------------------------


def read(value):
    return int(value, 0) if isinstance(value, str) else int(value)


def unhex(text):
    check(isinstance(text, str) and re.fullmatch("0x([0-9a-fA-F]{2})*", text), f"not hexadecimal: {text!r}")
    return bytes.fromhex(text[2:])


def data(value):
    return "0x" + value.hex()


def members(value, *names):
    check(isinstance(value, dict) and tuple(value) == names, f"expected the members {', '.join(names)}")
    return value.values()


def canonical(value):
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def header_of(text, what):
    found = decode(unhex(text), what)
    check(isinstance(found, list) and len(found) >= 15, f"{what}: not a header")
    return found


def verify(text, genesis, checkpoint=None):
    """Returns what a bundle proves. Raises `Refused`, which names the invalid part."""
    try:
        return verify_bundle(text, json.loads(text.decode("ascii")), genesis, checkpoint)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise Refused(f"malformed: {error}") from None


def verify_bundle(text, bundle, genesis, checkpoint):
    check(canonical(bundle) == text and not re.search(rb'"0x[^"]*[A-F]', text), "the file is not in canonical form")
    names = "format chainId consensus block votes header confirmations transaction accounts digest"
    form, chain_id, consensus, block, votes, raw, confirmations, transaction, accounts, digest = members(
        bundle, *names.split()
    )
    network = Network(genesis, checkpoint)
    header = header_of(raw, "header")
    number, block_hash = num(header[NUMBER]), network.hashes(header)[0]
    check(form == "ophion-proof/1", "format: unknown")
    check(chain_id == hex(network.chain_id), "chainId: not that of the genesis file")
    check(consensus == network.protocol(number), "consensus: not that of the genesis file")
    members(block, "number", "hash")
    check(block == {"number": hex(number), "hash": data(block_hash)}, "block: not that of the header")
    is_trusted, sealers, validators = network.hash == block_hash, [], 0
    at_epoch = network.last_epoch(network.number) == network.number
    check(is_trusted or at_epoch, "checkpoint: neither an epoch block nor the proven block")
    for position, vote in enumerate(votes):
        vote = header_of(vote, f"votes[{position}]")
        check(num(vote[NUMBER]) < number and not is_trusted, f"votes[{position}]: not needed")
        if checkpoint is None or num(vote[NUMBER]) > read(checkpoint["number"]):
            network.accept(vote)
    if is_trusted:
        check(not confirmations, "confirmations: not needed")
    else:
        validators = len(network.validators)
        sealers, parent = network.accept(header), block_hash
        for position, one in enumerate(confirmations):
            what, one = f"confirmations[{position}]", header_of(one, f"confirmations[{position}]")
            check(network.is_clique and len(sealers) <= validators // 2, f"{what}: not needed")
            check(one[PARENT] == parent and num(one[NUMBER]) == network.number + 1, f"{what}: does not follow")
            parent, author = network.hashes(one)[0], network.accept(one)[0]
            sealers += [author] if author not in sealers else []
        check(len(sealers) > validators // 2, "confirmations: more than half of the signers must confirm the block")
    proven = {
        "block": {"number": hex(number), "hash": data(block_hash), "timestamp": hex(num(header[TIME]))},
        "validators": hex(validators),
        "sealers": [data(sealer) for sealer in sealers],
        "transaction": transaction and verify_transaction(transaction, header, network.chain_id),
        "accounts": [verify_account(account, header[STATE]) for account in accounts],
    }
    del bundle["digest"]
    check(data(keccak(canonical(bundle))) == digest, "digest: the file has changed since its export")
    return proven


def verify_transaction(proof, header, chain_id):
    tx_hash, index, nodes, receipt_nodes = members(proof, "hash", "index", "proof", "receiptProof")
    key = encode(minimal(read(index)))
    raw = prove(header[TRANSACTIONS], key, list(map(unhex, nodes)), "transaction")
    receipt = prove(header[RECEIPTS], key, list(map(unhex, receipt_nodes)), "receipt")
    check(raw and receipt, "transaction.index: the block has no such transaction")
    check(data(keccak(raw)) == tx_hash, "transaction.hash: not that of the proven transaction")
    if raw[0] >= 0xC0:
        fields = decode(raw, "transaction")
        v = num(fields[6])
        chain, tail = ((v - 35) // 2, [minimal((v - 35) // 2), b"", b""]) if v > 34 else (chain_id, [])
        payload, parity, to = encode(fields[:6] + tail), (v - 35) % 2 if v > 34 else v - 27, 3
    else:
        fields = decode(raw[1:], "transaction")
        chain, payload, parity = num(fields[0]), raw[:1] + encode(fields[:-3]), num(fields[-3])
        to = 4 if raw[0] == 1 else 5
    check(chain == chain_id, "transaction: signed for another chain")
    check(hex(read(index)) == index and parity in (0, 1), "transaction: malformed")
    signature = fields[-2].rjust(32, b"\0") + fields[-1].rjust(32, b"\0") + bytes([parity])
    status, used, _, logs = decode(receipt if receipt[0] >= 0xC0 else receipt[1:], "receipt")
    return {
        "hash": tx_hash,
        "index": index,
        "from": data(recover(keccak(payload), signature, "transaction")),
        "to": data(fields[to]) if fields[to] else None,
        "value": hex(num(fields[to + 1])),
        "input": data(fields[to + 2]),
        "status": data(status),
        "cumulativeGasUsed": hex(num(used)),
        "logs": [{"address": data(a), "topics": [data(t) for t in ts], "data": data(d)} for a, ts, d in logs],
    }


def minimal(value):
    return value.to_bytes((value.bit_length() + 7) // 8, "big")


def verify_account(proof, state_root):
    address, nodes, slots = members(proof, "address", "proof", "slots")
    value = prove(state_root, keccak(unhex(address)), list(map(unhex, nodes)), f"account {address}")
    nonce, balance, root, code = decode(value, "account") if value else (b"", b"", EMPTY_ROOT, EMPTY_CODE)
    found = []
    for slot in slots:
        key, path = members(slot, "key", "proof")
        stored = prove(root, keccak(unhex(key)), list(map(unhex, path)), f"account {address}, slot {key}")
        found.append({"key": key, "value": hex(num(decode(stored, "slot"))) if stored else "0x0"})
    return {
        "address": address,
        "exists": value is not None,
        "nonce": hex(num(nonce)),
        "balance": hex(num(balance)),
        "storageRoot": data(root),
        "codeHash": data(code),
        "slots": found,
    }


if __name__ == "__main__":
    bundle, *trusted = [Path(name).read_bytes() for name in sys.argv[1:4]]
    try:
        sys.stdout.write(json.dumps(verify(bundle, *map(json.loads, trusted)), indent=2) + "\n")
    except Refused as refusal:
        sys.exit(f"Refused: {refusal}")
