"""Test support, for Ophion's own tests and for tests of other networks.

The node does not import this package.
"""
