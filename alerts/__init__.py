"""Rules, detectors, state machine: what a published snapshot says that someone should know. Reads marts only."""
