"""A private contract between two of three members: python client.py [URL of A, B and C]

Start the network first, in another terminal: ./start.sh
"""

# ruff: noqa: T201  # an example prints its results

from __future__ import annotations

import sys
import time
from base64 import b64decode, b64encode
from typing import Any

import rlp
from eth_keys import keys
from web3 import Web3

# This is a public test key: never use it for anything of value.
KEY = keys.PrivateKey(bytes.fromhex("8f2a55949038a9610f50fb23b5883af3b4ecb3c3bb792cbcefbd1542c692be63"))
# CODE is compiled from contract Number { uint n; function set(uint) ...; function get() view returns (uint) }
CODE = bytes.fromhex(
    "608060405234801561001057600080fd5b5060d08061001f6000396000f3fe60806040526004361060485763ffffffff7c0100000000000000"
    "00000000000000000000000000000000000000000060003504166360fe47b18114604d5780636d4ce63c146075575b600080fd5b3480156058"
    "57600080fd5b50607360048036036020811015606d57600080fd5b50356099565b005b348015608057600080fd5b506087609e565b60408051"
    "918252519081900360200190f35b600055565b6000549056fea165627a7a72305820cb1d0935d14b589300b12fcd0ab849a7e9019c81da24d6"
    "daa4f6b2f003d1b0180029"
)
SET, GET = "60fe47b1", "0x6d4ce63c"


class Member:
    """The node of one group member, with its JSON-RPC client."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.web3 = Web3(Web3.HTTPProvider(url))
        self.key = b64decode(self.ask("priv_status")["keys"][0])

    def ask(self, method: str, *params: Any) -> Any:
        answer = self.web3.provider.make_request(method, list(params))
        if "error" in answer:
            raise SystemExit(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def send(self, nonce: int, to: str | None, data: bytes, private_for: list[bytes]) -> dict[str, Any]:
        """Sign a private transaction, send it, and wait for its receipt."""
        chain_id = self.web3.eth.chain_id
        head = [nonce, 0, 3_000_000, bytes.fromhex(to[2:]) if to else b"", 0, data]
        tail = [self.key, private_for, b"restricted"]
        # the signed hash has the chain id and two zeros in the places of v, r and s
        signature = KEY.sign_msg_hash(Web3.keccak(rlp.encode([*head, chain_id, 0, 0, *tail])))
        v = 35 + 2 * chain_id + signature.v
        raw = rlp.encode([*head, v, signature.r, signature.s, *tail])
        marker = self.ask("eea_sendRawTransaction", "0x" + raw.hex())
        while self.ask("eth_getTransactionReceipt", marker) is None:
            time.sleep(0.05)
        receipt: dict[str, Any] = self.ask("eea_getTransactionReceipt", marker)
        return receipt

    def get(self, group: str, contract: str) -> str:
        found: str = self.ask("priv_call", group, {"to": contract, "data": GET}, "latest")
        return found


def main(urls: list[str]) -> None:
    a, b, c = (Member(name, url) for name, url in zip("ABC", urls, strict=True))
    for member in (a, b, c):
        print(f"{member.name} is {b64encode(member.key).decode()}")
    sender = KEY.public_key.to_checksum_address()
    both = [b64encode(a.key).decode(), [b64encode(b.key).decode()]]
    nonce = int(a.ask("eea_getTransactionCount", sender, *both), 16)
    receipt = a.send(nonce, None, CODE, [b.key])
    group, contract = receipt["privacyGroupId"], receipt["contractAddress"]
    print(f"A and B are group {group}, their contract is {contract}")
    for step, value in enumerate((47, 123), start=1):
        a.send(nonce + step, contract, bytes.fromhex(SET) + value.to_bytes(32, "big"), [b.key])
        # B executes private transactions of a block after importing the block, so wait until B has imported it
        while b.web3.eth.block_number < a.web3.eth.block_number:
            time.sleep(0.05)
        seen = [int(member.get(group, contract), 16) for member in (a, b)]
        print(f"A set {value}: A reads {seen[0]}, B reads {seen[1]}, C reads {c.get(group, contract)}")
    roots = {member.ask("priv_debugGetStateRoot", group, "latest") for member in (a, b)}
    print(f"A and B have {'the same state' if len(roots) == 1 else 'different states'}")


if __name__ == "__main__":
    main(sys.argv[1:] or [f"http://127.0.0.1:{port}" for port in (8545, 8546, 8547)])
