"""The pages: Streamlit and Plotly over the published snapshot. No page reads evidence and no page holds SQL."""
