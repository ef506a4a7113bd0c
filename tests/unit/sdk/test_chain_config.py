"""An embedded chain imports no services, so that `from ophion import Chain` is fast."""

from __future__ import annotations

import subprocess
import sys

from ophion.node.dev_options import DevConfig, DevPreset
from ophion.node.network import NetworkConfig
from ophion.sdk.chain_config import ChainConfig
from tests.integration.command import environment

SERVICES = ("enclave", "enclave_http", "gateway", "graphql", "metrics", "peers", "privacy")


def test_a_chain_imports_no_services() -> None:
    code = (
        "import sys; from ophion import Chain; Chain().mine();"
        f"print([one for one in sys.modules if one.startswith('ophion.') and one.split('.')[1] in {SERVICES}])"
    )
    ran = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_the_node_of_a_chain_has_the_same_options() -> None:
    config = ChainConfig(NetworkConfig(network="dev"), DevConfig(preset=DevPreset.ANVIL, account_count=3))
    node = config.node_config()
    assert node.accounts == config.accounts
    assert len(config.accounts) == 3
    for name in ("access", "consensus", "dev", "has_cheat_codes", "miner", "permissions", "pool", "storage"):
        assert getattr(node, name) == getattr(config, name), name
    assert not config.security_module.is_used
