"""The company's own GPU fleet, simulated from how inference engines work: steps, batches, caches, pods and nodes."""
