"""`ophion keys`: encrypt and decrypt private key files, list them and show their addresses."""

from __future__ import annotations

from pathlib import Path

from ophion.cli.command import Command, CommandSession
from ophion.cli.input_output import read_password
from ophion.cli.key_rotation import RotationOptions, check_rotation
from ophion.errors import CommandError, KeyFileError
from ophion.node.node_key_file import is_encrypted, load_key, read_key_file, read_password_file, write_text
from ophion.primitives.hexcodec import data
from ophion.runtime.clock import SystemEntropy
from ophion.runtime.options import Options, option
from ophion.wallet.keystore import SCRYPT_N, address_of, encrypt

_MIN_SCRYPT_N = 1 << 12


class PasswordOptions(Options):
    """Options: password file of `ophion keys`."""

    password_file: Path | None = option(
        "--password-file",
        default=None,
        help="File whose first line is the password. Otherwise the terminal asks for it.",
    )


class EncryptOptions(PasswordOptions):
    """Options: target file and scrypt cost of `ophion keys encrypt`."""

    target: Path = option("--to", help="File to write; it must not exist.")
    scrypt_n: int = option(
        "--scrypt-n",
        default=SCRYPT_N,
        help="Cost of a guess at the password: a power of two. Half the value halves the time to open the file.",
    )


class DecryptOptions(PasswordOptions):
    """Options: target file of `ophion keys decrypt`."""

    target: Path = option("--to", help="File to write; it must not exist. It holds the key in the clear.")


def encrypt_key(options: EncryptOptions, session: CommandSession) -> int:
    """Write an encrypted copy of a key file. The original file stays."""
    source = _one_file(session)
    _refuse_existing(options.target)
    if options.scrypt_n < _MIN_SCRYPT_N or options.scrypt_n & (options.scrypt_n - 1):
        raise CommandError(f"--scrypt-n: a power of two of at least {_MIN_SCRYPT_N} is expected.")
    if is_encrypted(read_key_file(source)):
        raise CommandError(f"{source} is encrypted already.")
    key = load_key(source)
    password = read_password() if options.password_file is None else read_password_file(options.password_file)
    if not password:
        raise CommandError("The password is empty.")
    write_text(options.target, encrypt(key, password, SystemEntropy().token, options.scrypt_n) + "\n", mode=0o600)
    print(f"{data(key.address)} {options.target}")
    print(f"Start the node with --node-private-key-file={options.target}, check it, then delete {source}.")
    return 0


def decrypt_key(options: DecryptOptions, session: CommandSession) -> int:
    """Write the key of an encrypted file as 64 hex digits."""
    source = _one_file(session)
    _refuse_existing(options.target)
    if not is_encrypted(read_key_file(source)):
        raise CommandError(f"{source} is not encrypted.")
    key = load_key(source, options.password_file)
    write_text(options.target, data(key.secret()), mode=0o600)
    print(f"{data(key.address)} {options.target}")
    return 0


def show_address(options: PasswordOptions, session: CommandSession) -> int:
    """Print the address of a key file. For an encrypted file, the key is decrypted to compute the address."""
    print(data(load_key(_one_file(session), options.password_file).address))
    return 0


def list_keys(options: Options, session: CommandSession) -> int:
    """Print address, encryption state and path of each key file in the given files and directories."""
    if not session.words:
        raise CommandError("Name at least one file or directory.")
    found = 0
    for word in session.words:
        path = Path(word)
        is_folder = path.is_dir()
        for file in sorted(one for one in path.rglob("*") if one.is_file()) if is_folder else [path]:
            try:
                line = _described(file)
            except KeyFileError:
                if is_folder:
                    continue  # skip the other files of a data directory
                raise
            print(line)
            found += 1
    if not found:
        raise CommandError("No key file was found.")
    return 0


def _described(path: Path) -> str:
    content = read_key_file(path)
    if not is_encrypted(content):
        return f"{data(load_key(path).address)} plain     {path}"
    address = address_of(content)
    return f"{'address not stated'.ljust(42) if address is None else data(address)} encrypted {path}"


def _one_file(session: CommandSession) -> Path:
    if len(session.words) != 1:
        raise CommandError("Name one key file.")
    return Path(session.words[0])


def _refuse_existing(target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise CommandError(f"{target} exists; name another file with --to.")


COMMANDS = (
    Command(
        "encrypt",
        "Encrypt a private key file with a password (Web3 Secret Storage).",
        encrypt_key,
        EncryptOptions,
        words="FILE",
        examples=(
            "ophion keys encrypt data/key --to=node.json",
            "ophion keys encrypt key --to=k.json --password-file=p",
        ),
    ),
    Command(
        "decrypt",
        "Write the key of an encrypted file in the clear.",
        decrypt_key,
        DecryptOptions,
        words="FILE",
        examples=("ophion keys decrypt node.json --to=key --password-file=password",),
    ),
    Command(
        "address",
        "Show the address of a private key file.",
        show_address,
        PasswordOptions,
        words="FILE",
        examples=("ophion keys address node.json",),
    ),
    Command(
        "list",
        "List the private key files in directories.",
        list_keys,
        words="FILE ...",
        examples=("ophion keys list network/keys",),
    ),
    Command(
        "check-rotation",
        "Check the steps of a validator key rotation. Exit code 1 until it is complete.",
        check_rotation,
        RotationOptions,
        examples=("ophion keys check-rotation --rpc=http://127.0.0.1:8545 --old=0x… --new=0x…",),
    ),
)
