"""Charts from frames: no query, no Streamlit. What is estimated is hatched, days whose bill is open are shaded."""
