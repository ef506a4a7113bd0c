"""Measure the wire protocol on one core: cost of a handshake, a frame and a packet, for both ends together, from
Python.

Only processor time counts, so the figures are valid on a busy machine too. Payloads are random bytes (not compressible,
the most expensive case) and zeros. Usage:

    .venv/bin/python bench/wire.py [--seconds 0.5]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

from ophion.native import wire
from ophion.native.crypto import public_key
from ophion.native.wire import Handshake, Session

SIZES = {"64 B": 64, "1 KiB": 1 << 10, "64 KiB": 1 << 16, "1 MiB": 1 << 20}
SECRET, OTHER = b"\x11" * 32, b"\x22" * 32


def per_second(work: Callable[[], object], seconds: float) -> float:
    """Return calls per second of processor time, the best of three attempts."""
    best = 0.0
    for _ in range(3):
        rounds = 0
        started = time.process_time()
        while (elapsed := time.process_time() - started) < seconds:
            work()
            rounds += 1
        best = max(best, rounds / elapsed)
    return best


def handshake() -> tuple[Session, Session]:
    """Return both ends of a new connection."""
    initiator = Handshake.initiate(SECRET, public_key(OTHER), os.urandom(wire.HANDSHAKE_ENTROPY))
    ack, _, theirs = Handshake.answer(OTHER, initiator.auth, os.urandom(wire.HANDSHAKE_ENTROPY))
    ours = initiator.finish(ack)
    for session in (ours, theirs):
        session.is_compressed = True
        session.max_message = 2**24 - 1
    return ours, theirs


def frames(payload: bytes, seconds: float) -> tuple[float, float, float]:
    """Return three rates in frames per second: written frames, read frames, and both in batches of up to 64."""
    ours, _ = handshake()
    sealed = per_second(lambda: ours.seal([(0x17, payload)]), seconds)
    ours, theirs = handshake()
    spent = 0.0
    count = 0
    while spent < seconds:
        frame = ours.seal([(0x17, payload)])
        started = time.process_time()
        theirs.feed(frame)
        spent += time.process_time() - started
        count += 1
    batch = [(0x17, payload)] * (64 if len(payload) <= 1024 else 1)
    together = per_second(lambda: theirs.feed(ours.seal(batch)), seconds) * len(batch)
    return sealed, count / spent, together


def main() -> None:
    """Print a table of the measured rates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.5, help="time for each figure")
    seconds = parser.parse_args().seconds
    print(f"handshake, both ends     {1e6 / per_second(handshake, seconds):10,.0f} microseconds")
    packet = wire.seal_packet(SECRET, 1, b"\xc8" + bytes(8))
    print(f"packet sealed            {1e6 / per_second(lambda: wire.seal_packet(SECRET, 1, packet), seconds):10,.0f}")
    print(f"packet opened            {1e6 / per_second(lambda: wire.open_packet(packet), seconds):10,.0f}")
    print(f"\n{'frames/s':24} {'written':>10} {'read':>10} {'there and back':>15} {'MB/s':>8}")
    for kind, make in {"noise": os.urandom, "zeros": bytes}.items():
        for name, size in SIZES.items():
            sealed, read, together = frames(make(size), seconds)
            print(
                f"{kind + ' ' + name:24} {sealed:10,.0f} {read:10,.0f} {together:15,.0f} {together * size / 1e6:8,.0f}"
            )


if __name__ == "__main__":
    main()
