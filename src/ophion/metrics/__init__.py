"""Metrics of a node (operations.md 9).

packages ──watch──> runtime.metrics_registry ──text──> server (Prometheus scrapes) or push (to a gateway)
                                             └─nested─> debug_metrics

options               options of metrics
metric_declarations   names, labels and help texts of all metrics
process               metrics of the operating system and the interpreter
requests              method tables that count and time requests
node_metrics          all metrics of one node
server                `GET /metrics`
push_gateway          pushes to a gateway at intervals
otlp                  sends metrics and spans of blocks to an OpenTelemetry collector
dashboard.json        a dashboard for Grafana
"""
