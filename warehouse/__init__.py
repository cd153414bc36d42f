"""The tables, and the attribution that fills them. Imports no other room."""
