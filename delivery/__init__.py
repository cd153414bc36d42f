"""Outbox and channels: a message is written in the caller's transaction and leaves once. Imports no other room."""
