"""Prometheus metrics of the watch layer, on a registry of their own so that tests and processes do not share state."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class Metrics:
    """All metrics; gauges that mirror a value elsewhere are bound with ``set_function`` by their owner."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        r = self.registry
        self.queue_depth = Gauge("realcli_queue_depth", "Keys that wait for a worker", registry=r)
        self.queue_delayed = Gauge("realcli_queue_delayed", "Keys that wait for their time", registry=r)
        self.queue_oldest_age = Gauge("realcli_queue_oldest_key_age_seconds", "Age of the key that waits longest", registry=r)
        self.reconcile_seconds = Histogram(
            "realcli_reconcile_seconds",
            "Time of one observe-decide-execute",
            ["kind"],
            registry=r,
            buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60),
        )
        self.reconcile_errors = Counter("realcli_reconcile_errors_total", "Reconciles that raised", ["kind", "error"], registry=r)
        self.worker_restarts = Counter(
            "realcli_task_restarts_total", "Workers and informers that ended by an error", ["task"], registry=r
        )
        self.writes = Counter("realcli_api_writes_total", "Write requests (each try)", ["verb", "resource", "code"], registry=r)
        self.reads = Counter("realcli_api_reads_total", "Read requests (each try)", ["resource", "code"], registry=r)
        self.store_size = Gauge("realcli_store_objects", "Objects in the store", ["kind"], registry=r)
        self.list_size = Gauge("realcli_last_list_objects", "Objects in the last LIST", ["kind", "namespace"], registry=r)
        self.watch_age = Gauge(
            "realcli_watch_age_seconds", "Seconds since the watch gave a sign of life", ["kind", "namespace"], registry=r
        )
        self.watch_events = Counter("realcli_watch_events_total", "Watch events", ["kind", "type"], registry=r)
        self.watch_ends = Counter(
            "realcli_watch_ends_total", "Ends of a watch: clean, silent, gone, error", ["kind", "cause"], registry=r
        )
        self.lists = Counter("realcli_lists_total", "LISTs: seed, relist, resync", ["kind", "cause"], registry=r)
        self.list_errors = Counter("realcli_list_errors_total", "LISTs that failed", ["kind", "error"], registry=r)
        self.pruned = Counter("realcli_pruned_total", "Objects whose deletion no event told", ["kind"], registry=r)
        self.unexplained_ends = Counter(
            "realcli_unexplained_ends_total", "Ends of pods that no rule explains (each has an event UnexplainedEnd)", registry=r
        )
        self.unreadable = Counter("realcli_unreadable_objects_total", "Objects of unexpected shape", ["kind"], registry=r)
