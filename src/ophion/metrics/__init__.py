"""Metrics of a node (operations.md 9).

packages ──watch──> runtime.metrics.MetricsRegistry ──text──> server (Prometheus scrapes) or push (to a gateway)
                                                    └─nested─> debug_metrics

options         options of metrics
families        metrics of chain, pool, interfaces and worker threads
process         metrics of the operating system and the interpreter
requests        method tables that count and time requests
node_metrics    all metrics of one node
server          `GET /metrics`
push_gateway    pushes to a gateway at intervals
dashboard.json  a dashboard for Grafana
"""
