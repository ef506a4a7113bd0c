"""Rust functions that execute simulated blocks (eth_simulateV1)."""

from ophion._native import CallRefused, SimulatedBlock, TimedOut, is_precompile, simulate_block

__all__ = ["CallRefused", "SimulatedBlock", "TimedOut", "is_precompile", "simulate_block"]
