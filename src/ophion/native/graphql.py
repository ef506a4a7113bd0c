"""Rust engine that validates and executes GraphQL requests."""

from ophion._native import GraphqlAsk, GraphqlEngine, GraphqlQuery, GraphqlReply, GraphqlRound, GraphqlText

__all__ = ["GraphqlAsk", "GraphqlEngine", "GraphqlQuery", "GraphqlReply", "GraphqlRound", "GraphqlText"]
