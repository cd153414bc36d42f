"""Command line and scheduler; composes the settings that every room declares for itself."""
