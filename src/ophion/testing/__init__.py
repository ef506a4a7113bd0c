"""Test support that is worth sharing: for our own tests, and for people who test networks of their own.

Nothing in the node imports this room.
"""
