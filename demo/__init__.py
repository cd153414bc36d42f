"""A demonstration company: its cloud bill, its gateway log and, kept apart, the truth about both."""
