"""Scheduled reports: one published snapshot in, a page and a message out. Figures come from `warehouse.measures`."""
