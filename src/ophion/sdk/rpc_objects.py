"""Blocks and transactions as JSON-RPC returns them, with a table for notebooks."""

from __future__ import annotations

from typing import Any

_SHOWN_TRANSACTIONS = 20


class BlockObject(dict[str, Any]):
    """A block as JSON-RPC returns it."""

    def _repr_html_(self) -> str:
        from ophion.sdk.html import table

        transactions = self.get("transactions") or []
        hashes = [one["hash"] if isinstance(one, dict) else one for one in transactions[:_SHOWN_TRANSACTIONS]]
        if len(transactions) > len(hashes):
            hashes.append(f"... {len(transactions) - len(hashes)} more")
        rows: dict[str, object] = {
            "hash": self.get("hash"),
            "parent": self.get("parentHash"),
            "timestamp": _number(self.get("timestamp")),
            "gas used": f"{_number(self.get('gasUsed'))} of {_number(self.get('gasLimit'))}",
            "base fee": f"{_number(self.get('baseFeePerGas'))} wei",
            "state root": self.get("stateRoot"),
            "transactions": ", ".join(hashes) or "none",
        }
        return table(f"Block {_number(self.get('number'))}", rows)


class TransactionObject(dict[str, Any]):
    """A transaction as JSON-RPC returns it."""

    def _repr_html_(self) -> str:
        from ophion.sdk.html import table

        rows: dict[str, object] = {
            "hash": self.get("hash"),
            "block": _number(self.get("blockNumber")),
            "from": self.get("from"),
            "to": self.get("to") or "creates a contract",
            "value": f"{_number(self.get('value'))} wei",
            "nonce": _number(self.get("nonce")),
            "gas": _number(self.get("gas")),
            "input": self.get("input"),
        }
        return table("Transaction", rows)


def _number(text: str | None) -> object:
    return "pending" if text is None else int(text, 16)
