"""Deploy a contract on a development node and use it: python deploy.py [URL]

Start a node first, in another terminal: ophion dev
"""

# ruff: noqa: T201  # an example prints its results

from __future__ import annotations

import json
import sys
from pathlib import Path

from web3 import Web3
from web3.exceptions import ContractCustomError
from web3.middleware import ExtraDataToPOAMiddleware, SignAndSendRawMiddlewareBuilder

# This is a public test key of the dev network: never use it for anything of value.
KEY = "0xc87509a1c067bbde78beb793e6fa76530b6382a4c0241e5e4a9ec0a0f44dc0d3"


def main(url: str) -> None:
    web3 = Web3(Web3.HTTPProvider(url))
    # web3.py needs this middleware to accept the long extra data (seals) of proof-of-authority blocks.
    web3.middleware_onion.inject(ExtraDataToPOAMiddleware, layer=0)
    account = web3.eth.account.from_key(KEY)
    web3.middleware_onion.inject(SignAndSendRawMiddlewareBuilder.build(account), layer=0)
    web3.eth.default_account = account.address
    print(f"connected to {web3.client_version}, chain {web3.eth.chain_id}, block {web3.eth.block_number}")

    # Counter.json holds the interface and the code of Counter.sol, compiled with solc.
    compiled = json.loads(Path(__file__).with_name("Counter.json").read_text())
    factory = web3.eth.contract(abi=compiled["abi"], bytecode=compiled["bytecode"])
    receipt = web3.eth.wait_for_transaction_receipt(factory.constructor(40).transact(), poll_latency=0.01)
    counter = web3.eth.contract(receipt["contractAddress"], abi=compiled["abi"])
    print(f"deployed at {counter.address} in block {receipt['blockNumber']} for {receipt['gasUsed']} gas")

    receipt = web3.eth.wait_for_transaction_receipt(counter.functions.add(2).transact(), poll_latency=0.01)
    [event] = counter.events.Counted().process_receipt(receipt)
    print(f"counted to {event['args']['count']} by {event['args']['who']}")
    print(f"count() answers {counter.functions.count().call()}")
    print(f"events found: {len(counter.events.Counted().get_logs(from_block=0))}")

    try:
        counter.functions.add(1000).call()
    except ContractCustomError as error:
        print(f"add(1000) reverts: {error.data}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8545")
