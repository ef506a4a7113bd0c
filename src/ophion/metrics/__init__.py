"""Metrics for those who watch over nodes (operations.md 9).

    rooms ──watch──> runtime.metrics.MetricsRegistry ──text──> server (Prometheus asks) or push (we tell a gateway)
                                                     └─nested─> debug_metrics

options      what is switched on
families     chain, pool, interface and lanes as metrics
process      what the operating system and the interpreter know of this process
requests     method tables that count and time what passes through them
node_metrics  all of these for one node
server       `GET /metrics`
push         a gateway is told at intervals, and told at the end to forget
dashboard.json  a dashboard for Grafana
"""
