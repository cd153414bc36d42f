"""One room of the collector; see docs/architecture.md."""
