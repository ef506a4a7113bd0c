"""Makes a SoftHSM token with secp256k1 keys. SOFTHSM names the library, e.g. libsofthsm2.so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

LIBRARY: Final = os.environ.get("SOFTHSM", "")
REASON: Final = "SOFTHSM does not name the library of SoftHSM 2"
TOKEN: Final = "ophion-test"
PIN: Final = "1234"
_GENERATE: Final = """
import sys
import pkcs11
from pkcs11.util.ec import encode_named_curve_parameters
library, token, pin = sys.argv[1:4]
with pkcs11.lib(library).get_token(token_label=token).open(rw=True, user_pin=pin) as session:
    for label in sys.argv[4:]:
        curve = {pkcs11.Attribute.EC_PARAMS: encode_named_curve_parameters(label.partition(":")[2] or "secp256k1")}
        parameters = session.create_domain_parameters(pkcs11.KeyType.EC, curve, local=True)
        public, _ = parameters.generate_keypair(store=True, label=label.partition(":")[0])
        print(public[pkcs11.Attribute.EC_POINT][-64:].hex())
"""


class SoftHsm:
    """A token directory. The library reads `SOFTHSM2_CONF` once per process."""

    def __init__(self, path: Path, *labels: str) -> None:
        """Create a token with one key pair per label. `LABEL:CURVE` selects another curve."""
        self.path = path
        (path / "tokens").mkdir(parents=True)
        self.config = path / "softhsm2.conf"
        self.config.write_text(
            f"directories.tokendir = {path / 'tokens'}\nobjectstore.backend = file\nlog.level = ERROR\n"
        )
        self.pin_file = path / "pin"
        self.pin_file.write_text(f"{PIN}\n")
        self.environment = {**os.environ, "SOFTHSM2_CONF": str(self.config)}
        # the package that installs the library also installs `softhsm2-util`
        command = ["softhsm2-util", "--init-token", "--free", f"--label={TOKEN}", f"--pin={PIN}", "--so-pin=5678"]
        subprocess.run(command, env=self.environment, check=True, stdout=subprocess.DEVNULL)
        generate = [sys.executable, "-c", _GENERATE, LIBRARY, TOKEN, PIN, *labels]
        made = subprocess.run(generate, env=self.environment, check=True, stdout=subprocess.PIPE, text=True)
        self.public_keys = [bytes.fromhex(line) for line in made.stdout.split()]
        """Public keys in the order of the labels."""

    def options(self, label: str) -> tuple[str, ...]:
        """Return the options of a node that uses a key."""
        return (
            "--security-module=pkcs11",
            f"--pkcs11-library={LIBRARY}",
            f"--pkcs11-slot={TOKEN}",
            f"--pkcs11-key={label}",
            f"--pkcs11-pin-file={self.pin_file}",
        )
