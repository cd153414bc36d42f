"""Scheduled reports: one published snapshot in, one page and one message out. Figures come from `warehouse.measures`."""
